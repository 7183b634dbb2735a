// FakeReplica: an HTTP/1.1 server that does what a test tells it, good or bad.
//
// With slots, bodies may lie in shared memory; its replies then get the field that grants slots
// unless the script wrote it itself.
//
// Runs its own event loop in its own thread from construction to destruction. It reads a request
// (head and body), hands it to the script and carries out the answer after its service time, one
// request at a time as a model instance does.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/time.h"
#include "os/endpoint.h"

namespace septet::test {

struct FakeRequest {
  std::string method;
  std::string target;
  std::string head;  // as it came
  std::size_t body_bytes = 0;
  std::string body;  // only when FakeReplica::Options::keep_bodies
  bool in_slot = false;
};

struct FakeAnswer {
  std::string bytes;   // sent as they are
  Duration service{};  // before they are sent
  enum class Then { kKeep, kClose, kReset } then = Then::kKeep;
};

// The answer to a gRPC call whose message lay in a slot (inference/slot_call.h).
std::string slot_call_reply(std::string_view grpc_status, std::string_view body);

// "HTTP/1.1 200 OK" with that body.
std::string http_reply(std::string_view body, std::string_view content_type = "application/json");

class FakeReplica {
 public:
  struct Options {
    os::Endpoint listen{};
    bool keep_bodies = false;
    bool one_at_a_time = true;  // service times follow one another
    bool slots = false;         // grants slots of shared memory, as septet serve does
    bool slot_calls = false;    // and to gRPC's calls
  };
  using Script = std::function<FakeAnswer(const FakeRequest&)>;

  // Aborts the test program when it cannot listen.
  FakeReplica(Options options, Script script);
  ~FakeReplica();
  FakeReplica(const FakeReplica&) = delete;
  FakeReplica& operator=(const FakeReplica&) = delete;

  const os::Endpoint& endpoint() const { return endpoint_; }
  // POSTs taken: questions about health, config and statistics are not counted. Any thread.
  std::uint64_t requests() const { return requests_; }
  std::uint64_t connections() const { return connections_; }

 private:
  class Server;
  os::Endpoint endpoint_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> connections_ = 0;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace septet::test
