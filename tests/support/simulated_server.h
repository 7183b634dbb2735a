// SimulatedServer: a v2 server whose service times are known, for tests and benches of clients.
//
// k replicas behind one queue; a request's service begins when a replica is free (first come, first
// served) and takes what the behaviour says, with nothing computed: only time passes. It runs on an
// event loop in a thread of its own, on a free port of 127.0.0.1, from construction to destruction.
// Behaviour functions are called in that thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/prng.h"
#include "base/time.h"
#include "os/endpoint.h"

namespace septet::test {

// What becomes of one request.
enum class Reply {
  kAnswer,     // 200 and an output
  kRefuse,     // 503 with a JSON error
  kReject,     // 400 with a JSON error
  kFail,       // 500 that is not JSON
  kReset,      // the connection is reset once the request was read
  kHalf,       // half of the head, then the connection closes
  kShortBody,  // less body than announced, then the connection closes
  kGarbage,    // bytes that are not HTTP
  kSilence,    // nothing, for ever
  kChunked,    // as kAnswer, with a chunked body
  kLastOne,    // as kAnswer, with Connection: close
};

struct ServerBehaviour {
  int replicas = 1;
  std::uint64_t seed = 1;
  // How long the n-th request (from 0) takes.
  std::function<Duration(std::uint64_t index, Prng& prng)> service_time = [](auto, auto&) {
    return Duration::zero();
  };
  std::function<Reply(std::uint64_t index)> reply = [](auto) { return Reply::kAnswer; };
  // Every period, nothing is served for so long; zero = never.
  Duration stall_period{};
  Duration stall_length{};
  // For exact service times: the thread spins so long before a service ends, because a wake-up from
  // sleep comes late. For benchmarks on machines that have processors to spare.
  Duration spin{};

  bool has_statistics = true;
  bool model_exists = true;
  bool is_sequence_model = false;
  std::string input_shape = "[16]";
  std::string metrics_page{};  // at /metrics; empty = there is none
  int max_batch_size = 8;
};

class SimulatedServer {
 public:
  explicit SimulatedServer(ServerBehaviour behaviour);
  ~SimulatedServer();
  SimulatedServer(const SimulatedServer&) = delete;
  SimulatedServer& operator=(const SimulatedServer&) = delete;

  os::Endpoint endpoint() const;
  // Inference requests read so far, well formed or not.
  std::uint64_t requests() const;
  // Most inference requests that were in the server at once.
  std::uint64_t most_at_once() const;
  // Head and body of the latest inference request, and of the latest one about shared memory or
  // traces.
  std::string last_request() const;
  std::string last_registration() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::thread thread_;
};

}  // namespace septet::test
