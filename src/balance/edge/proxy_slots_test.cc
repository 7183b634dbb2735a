// Bodies in slots of shared memory: replicas that take them, that do not, that lie, stall or die.

#include <atomic>
#include <latch>
#include <mutex>

#include "balance/edge/proxy_fixture.h"
#include "inference/slot_message.h"

namespace septet::balance {
namespace {

constexpr std::size_t kBodyBytes = 602'112;
const FakeReplica::Options kTakesSlots{.keep_bodies = true, .slots = true};

// A body whose bytes tell where they stand.
std::string tensor_request(std::size_t body_bytes = kBodyBytes, std::string_view more = {}) {
  std::string request =
      "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\n" + std::string(more) +
      "Inference-Header-Content-Length: 101\r\nContent-Length: " + std::to_string(body_bytes) +
      "\r\n\r\n";
  for (std::size_t i = 0; i < body_bytes; ++i) {
    request += static_cast<char>('a' + i * i % 23);
  }
  return request;
}

std::string body_of(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

class ProxySlotsTest : public ProxyTest {
 protected:
  // What replicas got, the last request of each.
  FakeReplica& add_recording_replica(FakeReplica::Options options) {
    return add_replica(
        [this](const FakeRequest& request) {
          const std::lock_guard lock(mutex_);
          last_ = request;
          return FakeAnswer{http_reply("{}")};
        },
        options);
  }
  void add_replica_that_waits_for(std::latch& answers) {
    add_replica(
        [&answers](const FakeRequest&) {
          answers.wait();
          return FakeAnswer{http_reply("{}")};
        },
        kTakesSlots);
  }
  FakeRequest last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  UpstreamStats upstream(std::size_t index) const { return proxy_->stats().upstreams[index]; }
  void wait_until_up() const {
    while (upstream(0).state != "up") {
    }
  }

  std::mutex mutex_;
  FakeRequest last_;
};

TEST_F(ProxySlotsTest, ALargeBodyIsReadWhereItWasReceived) {
  add_recording_replica(kTakesSlots);
  start();
  wait_until_up();

  const std::string request = tensor_request();
  const std::string reply = ask(request);

  EXPECT_EQ(reply,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_TRUE(last().in_slot);
  EXPECT_EQ(last().body, body_of(request));
  EXPECT_EQ(upstream(0).transport, "slots");
  EXPECT_EQ(upstream(0).slot_requests, 1U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
  EXPECT_GT(proxy_->stats().slot_bytes, 0U);
}

TEST_F(ProxySlotsTest, TensorsInASlotAreAligned) {
  add_recording_replica(kTakesSlots);
  start();
  wait_until_up();

  ask(tensor_request());

  const std::size_t at = last().head.find("Septet-Slot: ") + 13;
  const auto slot =
      inference::parse_slot_message(last().head.substr(at, last().head.find("\r\n", at) - at));
  ASSERT_TRUE(slot) << last().head;
  EXPECT_EQ((slot->offset + 101) % 64, 0U);
  EXPECT_EQ(slot->length, kBodyBytes);
}

TEST_F(ProxySlotsTest, OtherBodiesAreSentAsEver) {
  add_recording_replica(kTakesSlots);
  start();
  wait_until_up();
  const std::string of_json = "POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                              std::to_string(kBodyBytes) + "\r\n\r\n" +
                              std::string(kBodyBytes, ' ');

  for (const std::string& request :
       {tensor_request(5000), of_json, tensor_request(kBodyBytes, "Content-Encoding: gzip\r\n")}) {
    EXPECT_TRUE(ask(request).starts_with("HTTP/1.1 200"));
    EXPECT_FALSE(last().in_slot);
    EXPECT_EQ(last().body, body_of(request));
  }
  EXPECT_EQ(upstream(0).slot_requests, 0U);
}

TEST_F(ProxySlotsTest, AForeignReplicaGetsWholeBodies) {
  add_recording_replica({.keep_bodies = true});
  start();
  wait_until_up();

  const std::string request = tensor_request();
  EXPECT_TRUE(ask(request).starts_with("HTTP/1.1 200"));

  EXPECT_EQ(last().body, body_of(request));
  EXPECT_EQ(upstream(0).transport, "unix");
  EXPECT_EQ(proxy_->stats().slot_bytes, 0U);
}

TEST_F(ProxySlotsTest, CanBeTurnedOff) {
  add_recording_replica(kTakesSlots);
  ProxyOptions options;
  options.slots = false;
  start(options);
  wait_until_up();

  EXPECT_TRUE(ask(tensor_request()).starts_with("HTTP/1.1 200"));

  EXPECT_FALSE(last().in_slot);
  EXPECT_EQ(upstream(0).transport, "unix");
}

// A server of another kind took the replica's place and no probe has found out yet.
TEST_F(ProxySlotsTest, WhatDoesNotKnowSlotsAfterAllGetsTheRequestAgainWhole) {
  add_replica(
      [this](const FakeRequest& request) {
        const std::lock_guard lock(mutex_);
        last_ = request;
        return request.in_slot
                   ? FakeAnswer{"HTTP/1.1 400 Bad Request\r\nX: Septet-Slots\r\nContent-Length: "
                                "0\r\n\r\n"}
                   : FakeAnswer{http_reply("{}")};
      },
      kTakesSlots);
  start();
  wait_until_up();

  const std::string request = tensor_request();
  EXPECT_TRUE(ask(request).starts_with("HTTP/1.1 200"));

  EXPECT_FALSE(last().in_slot);
  EXPECT_EQ(last().body, body_of(request));
  EXPECT_EQ(upstream(0).transport, "unix");
  EXPECT_EQ(upstream(0).ejections, 0U);
}

TEST_F(ProxySlotsTest, GarbageAboutSlotsEjectsTheReplica) {
  add_replica(
      [](const FakeRequest& request) {
        FakeAnswer answer{http_reply("{}")};
        if (request.in_slot) {
          answer.bytes =
              "HTTP/1.1 200 OK\r\nSeptet-Slots: 1, 7 banana\r\nContent-Length: 0\r\n\r\n";
        }
        return answer;
      },
      kTakesSlots);
  start();
  wait_until_up();

  std::uint64_t asked = 0;
  while (upstream(0).ejections == 0 && ++asked < 20) {
    EXPECT_FALSE(ask(tensor_request()).starts_with("HTTP/1.1 200"));
  }

  EXPECT_EQ(upstream(0).ejections, 1U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
}

TEST_F(ProxySlotsTest, AReplicaThatDiesMidRequestLeavesTheSlotToAnother) {
  std::atomic<int> calls = 0;
  const auto sometimes_reset = [&calls, this](const FakeRequest& request) {
    const std::lock_guard lock(mutex_);
    last_ = request;
    FakeAnswer answer{http_reply("{}")};
    if (++calls % 20 == 0) {
      answer = {"HTTP/1.1 200 OK\r\nContent-Le", {}, FakeAnswer::Then::kReset};
    }
    return answer;
  };
  for (int i = 0; i < 3; ++i) {
    add_replica(sometimes_reset, kTakesSlots);
  }
  start();
  wait_until_up();

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 4, 300, tensor_request()});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_GE(proxy_->stats().retries, 10U);
  EXPECT_TRUE(last().in_slot);
  EXPECT_EQ(last().body, body_of(tensor_request()));
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
}

TEST_F(ProxySlotsTest, WithoutAFreeSlotABodyGoesIntoOtherMemory) {
  add_recording_replica(kTakesSlots);
  ProxyOptions options;
  options.memory_bytes = 4ULL << 20U;
  options.max_body_bytes = 1ULL << 20U;
  start(options);
  wait_until_up();
  const std::string request = tensor_request();
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 2; ++i) {
    slow.push_back(std::make_unique<RawClient>(proxy_->endpoint()));
    slow.back()->send(request.substr(0, request.size() - 1));
  }
  while (proxy_->stats().slots_used < 2) {
  }

  EXPECT_TRUE(ask(request).starts_with("HTTP/1.1 200"));
  EXPECT_FALSE(last().in_slot);
  EXPECT_EQ(last().body, body_of(request));

  for (const auto& client : slow) {
    client->send(request.substr(request.size() - 1));
    EXPECT_TRUE(client->reply().starts_with("HTTP/1.1 200"));
    EXPECT_TRUE(last().in_slot);
  }
  EXPECT_EQ(proxy_->stats().slot_bytes, 2ULL << 20U);
}

TEST_F(ProxySlotsTest, MoreThanTheMemoryHoldsWaitsAndIsServed) {
  add_recording_replica(kTakesSlots);
  ProxyOptions options;
  options.memory_bytes = 4ULL << 20U;
  options.max_body_bytes = 1ULL << 20U;
  start(options);
  wait_until_up();

  const test::ClosedLoopResult result =
      test::run_closed_loop({proxy_->endpoint(), 12, 100, tensor_request()});

  EXPECT_EQ(result.failed, 0U);
  EXPECT_GT(upstream(0).slot_requests, 0U);
  EXPECT_EQ(proxy_->stats().slots_used, 0U);
}

// It may still be reading: nobody else may get the slot before it has answered.
TEST_F(ProxySlotsTest, ASlotStaysTakenUntilAReplicaThatWasTooLateHasAnswered) {
  std::latch answers(1);
  add_replica_that_waits_for(answers);
  ProxyOptions options;
  options.request_timeout = milliseconds(300);
  start(options);
  wait_until_up();

  const std::string reply = ask(tensor_request());

  EXPECT_TRUE(reply.starts_with("HTTP/1.1 504")) << reply;
  EXPECT_EQ(proxy_->stats().slots_used, 1U);
  answers.count_down();
  while (proxy_->stats().slots_used > 0) {
  }
}

TEST_F(ProxySlotsTest, ASlotStaysTakenAfterItsClientHasLeft) {
  std::latch answers(1);
  add_replica_that_waits_for(answers);
  start();
  wait_until_up();
  {
    RawClient leaving(proxy_->endpoint());
    leaving.send(tensor_request());
    while (proxy_->stats().in_flight == 0) {
    }
  }
  while (proxy_->stats().connections > 0) {
  }

  EXPECT_EQ(proxy_->stats().slots_used, 1U);
  answers.count_down();
  while (proxy_->stats().slots_used > 0) {
  }
}

TEST_F(ProxySlotsTest, WhatAClientSaysAboutSlotsGoesNoFurther) {
  add_recording_replica(kTakesSlots);
  start();
  wait_until_up();

  ask("POST /v2/models/m/infer HTTP/1.1\r\nHost: a\r\nseptet-slot: 1 4096 0 4096\r\n"
      "Septet-Slots: 1\r\nSEPTET-SLOT-CALLS: 1\r\nContent-Length: 2\r\n\r\n{}");

  EXPECT_FALSE(last().in_slot);
  EXPECT_EQ(last().head.find("eptet-"), std::string::npos) << last().head;
  EXPECT_EQ(last().head.find("SEPTET-"), std::string::npos) << last().head;
  EXPECT_EQ(last().body, "{}");
}

}  // namespace
}  // namespace septet::balance
