#include "balance/route.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

TEST(FindRoute, SendsInferencesToOneReplica) {
  const Route route = find_route("POST", "/v2/models/densenet_onnx/versions/2/infer?x=1");
  EXPECT_EQ(route.kind, RouteKind::kInfer);
  EXPECT_EQ(route.model, "densenet_onnx");
  EXPECT_EQ(route.version, "2");
  EXPECT_EQ(find_route("POST", "/v2/models/m/generate").kind, RouteKind::kInfer);
  EXPECT_EQ(find_route("POST", "/v1/chat/completions").kind, RouteKind::kInfer);
}

TEST(FindRoute, KnowsTheRequestsOfTheWholeService) {
  EXPECT_EQ(find_route("GET", "/v2/health/live").kind, RouteKind::kLive);
  EXPECT_EQ(find_route("GET", "/v2/health/ready").kind, RouteKind::kReady);
  EXPECT_EQ(find_route("GET", "/v2").kind, RouteKind::kAnyReplica);
  EXPECT_EQ(find_route("GET", "/v2/models/m").kind, RouteKind::kAnyReplica);
  EXPECT_EQ(find_route("GET", "/v2/models/m/versions/1/config").kind, RouteKind::kAnyReplica);
  EXPECT_EQ(find_route("GET", "/v2/models/m/ready").kind, RouteKind::kAnyReplica);
  EXPECT_EQ(find_route("GET", "/v2/models/stats").kind, RouteKind::kStatistics);
  EXPECT_EQ(find_route("GET", "/v2/models/m/stats").kind, RouteKind::kStatistics);
  EXPECT_EQ(find_route("POST", "/v2/repository/index").kind, RouteKind::kRepositoryIndex);
  EXPECT_EQ(find_route("POST", "/v2/repository/R/index").kind, RouteKind::kRepositoryIndex);
  EXPECT_EQ(find_route("POST", "/v2/repository/models/m/load").kind, RouteKind::kEveryReplica);
  EXPECT_EQ(find_route("POST", "/v2/systemsharedmemory/region/r/register").kind,
            RouteKind::kEveryReplica);
  EXPECT_EQ(find_route("GET", "/v2/systemsharedmemory/status").kind, RouteKind::kAnyReplica);
  EXPECT_EQ(find_route("POST", "/v2/models/m/trace/setting").kind, RouteKind::kEveryReplica);
  EXPECT_EQ(find_route("GET", "/metrics").kind, RouteKind::kMetrics);
}

TEST(FindRoute, TakesAModelWithAnyName) {
  EXPECT_EQ(find_route("POST", "/v2/models/stats/infer").model, "stats");
  EXPECT_EQ(find_route("POST", "/v2/models/versions/infer").model, "versions");
}

}  // namespace
}  // namespace septet::balance
