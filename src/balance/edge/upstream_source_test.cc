#include "balance/edge/upstream_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace septet::balance {
namespace {

class UpstreamFile {
 public:
  UpstreamFile() : path(testing::TempDir() + "/septet_upstreams_" + std::to_string(getpid())) {}
  ~UpstreamFile() { ::unlink(path.c_str()); }
  void write(std::string_view text) const { std::ofstream(path) << text; }
  const std::string path;
};

TEST(ParseUpstream, UnderstandsAddressesNamesAndModels) {
  const auto plain = parse_upstream("10.0.0.7:9000");
  const auto named = parse_upstream("unix:/run/a name=MIG-1 models=a,b");

  ASSERT_TRUE(plain.ok() && named.ok());
  EXPECT_EQ(plain->front().name, "10.0.0.7:9000");
  EXPECT_EQ(named->front().name, "MIG-1");
  EXPECT_EQ(named->front().endpoint.unix_path, "/run/a");
  EXPECT_EQ(named->front().models, (std::vector<std::string>{"a", "b"}));
}

TEST(ParseUpstream, SaysWhereTheGrpcServerIs) {
  const auto at_path = parse_upstream("unix:/run/a grpc=unix:/run/a.grpc");
  const auto same_host = parse_upstream("10.0.0.7:9000 grpc=9001");
  const auto other = parse_upstream("10.0.0.7:9000 grpc=10.0.0.8:9001");

  ASSERT_TRUE(at_path.ok() && same_host.ok() && other.ok());
  EXPECT_EQ(at_path->front().grpc->unix_path, "/run/a.grpc");
  EXPECT_EQ(same_host->front().grpc->text(), "10.0.0.7:9001");
  EXPECT_EQ(other->front().grpc->text(), "10.0.0.8:9001");
  EXPECT_EQ(parse_upstream("10.0.0.7:9000")->front().grpc, std::nullopt);
  EXPECT_EQ(parse_upstream("unix:/run/a grpc=9001").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(parse_upstream("10.0.0.7:9000 grpc=99999").error().kind, ErrorKind::kUsage);
}

TEST(ParseUpstream, LooksUpEveryAddressOfAName) {
  const auto found = parse_upstream("dns:127.0.0.1:8000 name=pod");

  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().name, "pod@127.0.0.1:8000");
  EXPECT_EQ(found->front().endpoint.host, "127.0.0.1");
}

TEST(ParseUpstream, SaysWhatIsWrong) {
  EXPECT_EQ(parse_upstream("a:99999").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(parse_upstream("a:1 colour=red").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(parse_upstream("").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(parse_upstream("dns:no-such-name.invalid:80").error().kind, ErrorKind::kNotFound);
}

TEST(UpstreamSource, ReadsTheFileAgainEveryTime) {
  const UpstreamFile file;
  const UpstreamSource source({"unix:/run/a"}, file.path);
  file.write("# replicas\nunix:/run/b\n\nunix:/run/a  # known\n");

  EXPECT_EQ(source.read()->size(), 2U);
  file.write("unix:/run/c\nunix:/run/d\n");
  EXPECT_EQ(source.read()->size(), 3U);
}

TEST(UpstreamSource, NamesTheLineThatIsWrong) {
  const UpstreamFile file;
  file.write("unix:/run/b\nhost:port\n");

  const auto result = UpstreamSource({}, file.path).read();

  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find(file.path + ":2:"), std::string::npos);
}

}  // namespace
}  // namespace septet::balance
