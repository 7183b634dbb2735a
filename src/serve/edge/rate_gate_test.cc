// Models that share a resource, through the whole server.
#include <gmock/gmock.h>

#include <thread>

#include "support/test_server.h"

namespace septet::serve {
namespace {

using test_support::HttpClient;
using test_support::TestServer;
using ::testing::HasSubstr;

constexpr const char* kBody =
    R"({"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[7]}]})";

class RateGateTest : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& resource, const std::string& compute,
           int instances = 1) {
    server_.add_copy(name, "TYPE_INT32",
                     "instance_group { kind: KIND_CPU count: " + std::to_string(instances) +
                         " rate_limiter { resources { " + resource + " } } }",
                     compute);
  }
  void send(const std::string& model) {
    clients_.push_back(std::make_unique<HttpClient>(server_.connect()));
    clients_.back()->send("POST /v2/models/" + model + "/infer HTTP/1.1\r\nHost: x\r\n" +
                          "Content-Length: " + std::to_string(std::string(kBody).size()) +
                          "\r\n\r\n" + kBody);
  }
  std::uint64_t pending(const std::string& model) {
    return (*server_.store().find(model, ""))->scheduler().statistics().pending;
  }

  TestServer server_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
};

TEST_F(RateGateTest, AnInstanceWaitsForItsResource) {
  add("first", "name: \"R\" count: 1", "hold");
  add("second", "name: \"R\" count: 1", "copy");
  add("third", "name: \"other\" count: 1", "copy");
  server_.limit_rates({});
  server_.start();
  send("first");
  server_.backend().await_held(1);
  send("second");
  while (pending("second") == 0) {
    std::this_thread::yield();
  }

  // What needs something else is served meanwhile.
  EXPECT_EQ(server_.connect().post("/v2/models/third/infer", kBody).status, 200U);
  EXPECT_EQ(pending("second"), 1U);
  EXPECT_EQ(server_.backend().batches().size(), 2U);
  server_.backend().release();

  EXPECT_EQ(clients_[0]->receive().status, 200U);
  EXPECT_EQ(clients_[1]->receive().status, 200U);
}

TEST_F(RateGateTest, APoolSaysHowManyRunAtOnce) {
  add("model", "name: \"R\" count: 2", "hold", 3);
  server_.limit_rates({{.name = "R", .count = 4}});
  server_.start();
  for (int i = 0; i < 3; ++i) {
    send("model");
  }
  server_.backend().await_held(2);
  while (pending("model") != 1) {
    std::this_thread::yield();
  }

  EXPECT_EQ(server_.backend().batches().size(), 2U);
  server_.backend().release();

  for (const auto& client : clients_) {
    EXPECT_EQ(client->receive().status, 200U);
  }
  EXPECT_EQ(server_.backend().batches().size(), 3U);
}

TEST_F(RateGateTest, AModelThatAsksForMoreThanThereIsIsNotLoaded) {
  add("greedy", "name: \"R\" count: 5", "copy");
  server_.limit_rates({{.name = "R", .count = 4}});
  server_.start();

  EXPECT_THAT(server_.connect().post("/v2/repository/index", "").body,
              HasSubstr("needs 5 of resource 'R', of which there are 4"));
}

TEST_F(RateGateTest, AReplacedModelGivesItsPlaceBack) {
  add("model", "name: \"R\" count: 1", "copy");
  server_.limit_rates({});
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  HttpClient client = server_.connect();

  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.post("/v2/models/model/infer", kBody).status, 200U);
    EXPECT_EQ(client.post("/v2/repository/models/model/load", "").status, 200U);
  }
  EXPECT_EQ(client.post("/v2/models/model/infer", kBody).status, 200U);
}

// The queue of a model whose instances wait for a resource drains all the same.
TEST_F(RateGateTest, WaitingRequestsAreAnsweredWhenTheModelGoes) {
  add("holder", "name: \"R\" count: 1", "hold");
  add("waiter", "name: \"R\" count: 1", "copy", 2);
  server_.limit_rates({});
  server_.start({.control = InferenceServerOptions::Control::kExplicit});
  send("holder");
  server_.backend().await_held(1);
  for (int i = 0; i < 3; ++i) {
    send("waiter");
  }
  while (pending("waiter") != 3) {
    std::this_thread::yield();
  }
  std::thread unload([&] {
    EXPECT_EQ(server_.connect().post("/v2/repository/models/waiter/unload", "").status, 200U);
  });

  server_.backend().release();
  unload.join();

  for (const auto& client : clients_) {
    EXPECT_EQ(client->receive().status, 200U);
  }
}

}  // namespace
}  // namespace septet::serve
