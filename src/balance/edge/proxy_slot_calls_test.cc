// gRPC's calls whose message lies in a slot: replicas that read it there, err, die or stall.

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>

#include "balance/edge/proxy.h"
#include "balance/grpc_route.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "inference/slot_call.h"
#include "inference/slot_message.h"
#include "support/fake_grpc_replica.h"
#include "support/fake_replica.h"
#include "support/grpc_loop.h"

namespace septet::balance {
namespace {

using test::FakeAnswer;
using test::FakeReplica;
using test::FakeRequest;
using test::grpc_infer_message;
using test::GrpcLoad;
using test::GrpcLoadResult;
using test::slot_call_reply;

constexpr std::size_t kTensorBytes = 602'112;

class ProxySlotCallsTest : public testing::Test {
 protected:
  // Its HTTP side does as the script says with calls in slots; its gRPC side answers "whole".
  void add_replica(FakeReplica::Script script, FakeReplica::Options options = {}) {
    const std::string path = testing::TempDir() + "/septet_slot_calls_" + std::to_string(getpid()) +
                             "_" + std::to_string(http_.size());
    options.listen.unix_path = path + "h";
    options.keep_bodies = options.slots = true;
    http_.push_back(std::make_unique<FakeReplica>(
        options, [this, script = std::move(script)](const FakeRequest& request) {
          if (!request.in_slot) {
            return FakeAnswer{test::http_reply("{}")};
          }
          {
            const std::lock_guard lock(mutex_);
            last_ = request;
          }
          return script(request);
        }));
    grpc_.push_back(std::make_unique<test::FakeGrpcReplica>(
        os::Endpoint{"", 0, path + "g"},
        [](const test::FakeCall&) { return test::FakeCallAnswer{framed_message("whole")}; }));
    upstreams_.push_back({"r" + std::to_string(upstreams_.size()),
                          http_.back()->endpoint(),
                          {},
                          grpc_.back()->endpoint()});
  }
  void add_replica_that_waits_for(std::latch& answers) {
    add_replica(
        [&answers](const FakeRequest&) {
          answers.wait();
          return FakeAnswer{slot_call_reply("0", "in slot")};
        },
        {.slot_calls = true});
  }
  void start(ProxyOptions options = {}) {
    options.listen = {os::Endpoint{"127.0.0.1", 0, ""}};
    auto proxy = Proxy::start(std::move(options), upstreams_);
    ASSERT_TRUE(proxy.ok()) << proxy.error().text();
    proxy_ = std::move(*proxy);
    for (std::size_t i = 0; i < upstreams_.size(); ++i) {
      while (upstream(i).state != "up") {
      }
    }
  }
  UpstreamStats upstream(std::size_t index = 0) const { return proxy_->stats().upstreams[index]; }
  GrpcLoad load(std::string message) const {
    return {.target = proxy_->endpoint(), .message = std::move(message)};
  }
  GrpcLoadResult infer(std::size_t bytes = kTensorBytes) const {
    return test::run_grpc_load(load(grpc_infer_message("m", bytes)));
  }
  FakeRequest last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

  std::vector<std::unique_ptr<FakeReplica>> http_;
  std::vector<std::unique_ptr<test::FakeGrpcReplica>> grpc_;
  std::vector<Upstream> upstreams_;
  std::unique_ptr<Proxy> proxy_;
  std::mutex mutex_;
  FakeRequest last_;
};

const FakeReplica::Options kTakesCalls{.slot_calls = true};

FakeAnswer answer_ok(const FakeRequest& /*request*/) { return {slot_call_reply("0", "in slot")}; }

TEST_F(ProxySlotCallsTest, ALargeMessageIsReadWhereItWasReceived) {
  add_replica(answer_ok, kTakesCalls);
  start();

  const GrpcLoadResult result = infer();

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.last_reply, framed_message("in slot"));
  EXPECT_TRUE(last().body == grpc_infer_message("m", kTensorBytes));
  EXPECT_EQ(last().target, inference::kSlotCallTarget);
  EXPECT_EQ(grpc_[0]->calls(), 0U);
  EXPECT_EQ(upstream().slot_requests, 1U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
  EXPECT_EQ(proxy_->stats().replies_2xx, 1U);
}

TEST_F(ProxySlotCallsTest, TensorsInASlotAreAligned) {
  add_replica(answer_ok, kTakesCalls);
  start();

  EXPECT_EQ(infer().failed, 0U);

  const FakeRequest request = last();
  const std::size_t at = request.head.find("Septet-Slot: ") + 13;
  const auto slot = inference::parse_slot_message(
      std::string_view(request.head).substr(at, request.head.find("\r\n", at) - at));
  ASSERT_TRUE(slot) << request.head;
  EXPECT_EQ((slot->offset + inference::first_tensor_at(request.body).value_or(1)) % 64, 0U);
}

TEST_F(ProxySlotCallsTest, OtherMessagesGoAsEver) {
  add_replica(answer_ok, kTakesCalls);
  start();
  std::string compressed = grpc_infer_message("m", kTensorBytes);
  compressed[0] = 1;

  EXPECT_EQ(infer(1000).last_reply, framed_message("whole"));
  EXPECT_EQ(test::run_grpc_load(load(compressed)).last_reply, framed_message("whole"));

  EXPECT_EQ(upstream().slot_requests, 0U);
}

TEST_F(ProxySlotCallsTest, AReplicaThatTakesOnlyRequestsInSlotsGetsCallsWhole) {
  add_replica(answer_ok);
  start();

  EXPECT_EQ(infer().last_reply, framed_message("whole"));

  EXPECT_EQ(upstream().transport, "slots");
  EXPECT_EQ(upstream().slot_requests, 0U);
}

TEST_F(ProxySlotCallsTest, WhatDoesNotKnowSlotsAfterAllGetsTheCallAgainWhole) {
  add_replica(
      [](const FakeRequest&) {
        return FakeAnswer{"HTTP/1.1 404 Not Found\r\nX: Septet-Slots\r\nContent-Length: 0\r\n\r\n"};
      },
      kTakesCalls);
  start();

  EXPECT_EQ(infer().last_reply, framed_message("whole"));

  EXPECT_EQ(upstream().transport, "unix");
  EXPECT_EQ(upstream().ejections, 0U);
}

TEST_F(ProxySlotCallsTest, AnErrorOfTheReplicaIsTheClients) {
  add_replica([](const FakeRequest&) { return FakeAnswer{slot_call_reply("3", "bad 100 %")}; },
              kTakesCalls);
  start();

  const GrpcLoadResult result = infer();

  EXPECT_EQ(result.statuses.begin()->first, "3");
  EXPECT_EQ(result.last_message, "bad 100 %25");
  EXPECT_EQ(proxy_->stats().replies_4xx, 1U);
  EXPECT_EQ(upstream().failed, 0U);
}

TEST_F(ProxySlotCallsTest, AReplyThatIsNoneIsAnInternalError) {
  add_replica([](const FakeRequest&) { return FakeAnswer{test::http_reply("{}")}; }, kTakesCalls);
  start();

  EXPECT_EQ(infer().statuses.begin()->first, "13");
}

TEST_F(ProxySlotCallsTest, ALongReplyComesWhole) {
  const std::string text(3 << 20U, 'y');
  add_replica([&text](const FakeRequest&) { return FakeAnswer{slot_call_reply("0", text)}; },
              kTakesCalls);
  start();

  EXPECT_TRUE(infer().last_reply == framed_message(text));
}

TEST_F(ProxySlotCallsTest, AReplicaThatDiesMidCallCostsNone) {
  std::atomic<int> calls = 0;
  for (int i = 0; i < 3; ++i) {
    add_replica(
        [&calls](const FakeRequest&) {
          FakeAnswer answer{slot_call_reply("0", "in slot")};
          if (++calls % 20 == 0) {
            answer = {"HTTP/1.1 200 OK\r\nContent-Le", {}, FakeAnswer::Then::kReset};
          }
          return answer;
        },
        kTakesCalls);
  }
  start();
  GrpcLoad many = load(grpc_infer_message("m", kTensorBytes));
  many.connections = 2;
  many.calls_each = 4;
  many.calls = 300;

  const GrpcLoadResult result = test::run_grpc_load(many);

  EXPECT_EQ(result.failed, 0U);
  EXPECT_EQ(result.answered, 300U);
  EXPECT_GE(proxy_->stats().retries, 10U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
}

TEST_F(ProxySlotCallsTest, ASlotStaysTakenUntilAReplicaThatWasTooLateHasAnswered) {
  std::latch answers(1);
  add_replica_that_waits_for(answers);
  start();
  GrpcLoad hasty = load(grpc_infer_message("m", kTensorBytes));
  hasty.fields = {{"grpc-timeout", "300m"}};

  const GrpcLoadResult result = test::run_grpc_load(hasty);

  EXPECT_EQ(result.statuses.begin()->first, "4");
  EXPECT_EQ(proxy_->stats().slots_used, 1U);
  answers.count_down();
  while (proxy_->stats().slots_used > 0) {
  }
}

TEST_F(ProxySlotCallsTest, ASlotStaysTakenAfterItsClientHasLeft) {
  std::latch answers(1);
  add_replica_that_waits_for(answers);
  start();
  GrpcLoad impatient = load(grpc_infer_message("m", kTensorBytes));
  impatient.give_up = milliseconds(300);

  test::run_grpc_load(impatient);
  while (proxy_->stats().connections > 0) {
  }

  EXPECT_EQ(proxy_->stats().slots_used, 1U);
  answers.count_down();
  while (proxy_->stats().slots_used > 0) {
  }
  EXPECT_EQ(upstream().ejections, 0U);
}

}  // namespace
}  // namespace septet::balance
