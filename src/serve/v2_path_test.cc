#include "serve/v2_path.h"

#include <gtest/gtest.h>

namespace septet::serve {
namespace {

using Kind = V2Path::Kind;

TEST(V2Path, KnowsEveryPathOfTheProtocol) {
  const auto kind = [](std::string_view target) {
    const auto path = parse_v2_path(target);
    return path ? std::optional(path->kind) : std::nullopt;
  };

  EXPECT_EQ(kind("/v2"), Kind::kServerMetadata);
  EXPECT_EQ(kind("/v2/health/live"), Kind::kLive);
  EXPECT_EQ(kind("/v2/health/ready"), Kind::kReady);
  EXPECT_EQ(kind("/v2/models/m"), Kind::kModelMetadata);
  EXPECT_EQ(kind("/v2/models/m/versions/2"), Kind::kModelMetadata);
  EXPECT_EQ(kind("/v2/models/m/ready"), Kind::kModelReady);
  EXPECT_EQ(kind("/v2/models/m/versions/2/config"), Kind::kModelConfig);
  EXPECT_EQ(kind("/v2/models/m/stats"), Kind::kModelStatistics);
  EXPECT_EQ(kind("/v2/models/stats"), Kind::kAllStatistics);
  EXPECT_EQ(kind("/v2/models/m/infer?x=1"), Kind::kInfer);
  EXPECT_EQ(kind("/v2/repository/index"), Kind::kRepositoryIndex);
  EXPECT_EQ(kind("/v2/repository/r/index"), Kind::kRepositoryIndex);
  EXPECT_EQ(kind("/v2/repository/models/m/load"), Kind::kRepositoryLoad);
  EXPECT_EQ(kind("/v2/repository/r/models/m/unload"), Kind::kRepositoryUnload);
  EXPECT_EQ(kind("/v2/systemsharedmemory/status"), Kind::kSystemMemoryStatus);
  EXPECT_EQ(kind("/v2/systemsharedmemory/region/r/register"), Kind::kSystemMemoryRegister);
  EXPECT_EQ(kind("/v2/cudasharedmemory/unregister"), Kind::kCudaMemoryUnregister);
  EXPECT_EQ(kind("/v2/trace/setting"), Kind::kTraceSetting);
  EXPECT_EQ(kind("/v2/models/m/trace/setting"), Kind::kTraceSetting);
  EXPECT_EQ(kind("/v2/logging"), Kind::kLogging);
  EXPECT_EQ(kind("/metrics"), Kind::kMetrics);
}

TEST(V2Path, TakesModelVersionAndRegionApart) {
  const auto path = parse_v2_path("/v2/models/my%20model/versions/12/infer");
  const auto memory = parse_v2_path("/v2/systemsharedmemory/region/input0/status");

  ASSERT_TRUE(path && memory);
  EXPECT_EQ(path->model, "my model");
  EXPECT_EQ(path->version, "12");
  EXPECT_EQ(memory->region, "input0");
}

TEST(V2Path, RefusesWhatIsNoPathOfTheProtocol) {
  for (const std::string_view target :
       {"", "/", "v2", "/v2/", "/v1", "/v2/models", "/v2/models//infer", "/v2/models/m/versions/x",
        "/v2/models/m/versions/1/versions/2", "/v2/models/m/infer/more", "/v2/models/%zz/infer",
        "/v2/models/%00/infer", "/v2/models/m%2", "/v2/systemsharedmemory/register",
        "/v2/repository/models/m/delete", "*"}) {
    EXPECT_FALSE(parse_v2_path(target)) << target;
  }
}

TEST(V2Path, AnEncodedSlashStaysInsideItsSegment) {
  const auto path = parse_v2_path("/v2/models/..%2f..%2fetc/infer");

  ASSERT_TRUE(path);
  EXPECT_EQ(path->model, "../../etc");  // no model has such a name; no file is looked for
}

}  // namespace
}  // namespace septet::serve
