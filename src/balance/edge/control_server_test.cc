#include "balance/edge/control_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/raw_client.h"

namespace septet::balance {
namespace {

using test::RawClient;

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest()
      : folder_(testing::TempDir() + "/septet_control_" + std::to_string(getpid())),
        keeper_({"unix:/a name=first"}, folder_ + ".file",
                {Upstream{"first", os::Endpoint{"", 0, "/a"}, {}}},
                [this](const std::vector<Upstream>& wanted) {
                  used_.clear();
                  for (const Upstream& upstream : wanted) {
                    used_.push_back(upstream.name);
                  }
                  return Result<Ok>(Ok{});
                }) {
    std::ofstream(folder_ + ".file") << "unix:/of/the/file name=filed\n";
    auto server = ControlServer::start(os::Endpoint{"", 0, folder_ + ".sock"}, keeper_);
    EXPECT_TRUE(server.ok());
    server_ = *std::move(server);
  }
  ~ControlServerTest() override { ::unlink((folder_ + ".file").c_str()); }

  std::string ask(const std::string& method, const std::string& body,
                  const std::string& target = "/septet/upstreams") {
    RawClient client(server_->endpoint());
    client.send(method + " " + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.rest();
  }

  const std::string folder_;
  std::vector<std::string> used_;
  UpstreamKeeper keeper_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, ShowsAndChangesTheReplicas) {
  EXPECT_NE(ask("POST", R"({"upstreams":["unix:/b name=second models=m"]})").find("200 OK"),
            std::string::npos);
  EXPECT_EQ(used_, (std::vector<std::string>{"first", "second", "filed"}));

  ask("DELETE", R"({"upstreams":["first"]})");
  EXPECT_EQ(used_, (std::vector<std::string>{"second", "filed"}));

  ask("PUT", R"({"upstreams":["unix:/c name=third"]})");
  EXPECT_EQ(used_, (std::vector<std::string>{"third", "filed"}));

  const std::string shown = ask("GET", "");
  const auto document = nlohmann::json::parse(shown.substr(shown.find("\r\n\r\n") + 4));
  EXPECT_EQ(document["schema"], "septet.upstreams/1");
  EXPECT_EQ(document["given"], nlohmann::json({"unix:/c name=third"}));
  ASSERT_EQ(document["upstreams"].size(), 2U);
  EXPECT_EQ(document["upstreams"][1]["name"], "filed");
  EXPECT_EQ(document["upstreams"][1]["address"], "unix:/of/the/file");
}

TEST_F(ControlServerTest, WhatIsRefusedChangesNothing) {
  used_ = {"untouched"};

  EXPECT_NE(ask("PUT", R"({"upstreams":["unix:/b weight=3"]})").find("400"), std::string::npos);
  EXPECT_NE(ask("POST", "{").find("400"), std::string::npos);
  EXPECT_NE(ask("DELETE", R"({"upstreams":["filed"]})").find("404"), std::string::npos);
  EXPECT_NE(ask("GET", "", "/v2").find("404"), std::string::npos);
  EXPECT_NE(ask("no method", "").find("400"), std::string::npos);

  EXPECT_EQ(used_, std::vector<std::string>{"untouched"});
  EXPECT_NE(ask("GET", "").find("unix:/a name=first"), std::string::npos);
}

TEST_F(ControlServerTest, TheLastReplicaStays) {
  std::ofstream(folder_ + ".file") << "# none\n";

  const std::string refused = ask("DELETE", R"({"upstreams":["first"]})");

  EXPECT_NE(refused.find("no replica would be left"), std::string::npos) << refused;
  EXPECT_TRUE(used_.empty());
}

TEST_F(ControlServerTest, AClientThatLeavesHoldsUpNobody) {
  {
    RawClient client(server_->endpoint());
    client.send("PUT /septet/upstreams HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{");
  }
  EXPECT_NE(ask("GET", "").find("200 OK"), std::string::npos);
}

TEST_F(ControlServerTest, OnlyItsOwnerOnThisMachineReachesIt) {
  struct stat status {};
  ASSERT_EQ(::stat(server_->endpoint().unix_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0177U, 0U);

  const auto open = ControlServer::start(os::Endpoint{"0.0.0.0", 0, ""}, keeper_);
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace septet::balance
