// FakeGrpcReplica: a gRPC server that does what a test tells it, good or bad.
//
// Runs its own event loop in its own thread from construction to destruction. A call whose method
// ends in "Stream..." is echoed as it comes; any other is handed to the script once its message is
// whole. Health is not asked over gRPC: put a FakeReplica beside it for that.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "os/endpoint.h"

namespace septet::test {

struct FakeCall {
  std::string path;
  std::string message;  // with its prefix
  std::string fields;   // "name: value\n" of the head
};

struct FakeCallAnswer {
  std::string message;       // with its prefix; empty = none
  std::string status = "0";  // grpc-status
  enum class Then { kReply, kReset, kRefuse, kClose, kSilence } then = Then::kReply;
};

class FakeGrpcReplica {
 public:
  using Script = std::function<FakeCallAnswer(const FakeCall&)>;

  // Aborts the test program when it cannot listen.
  FakeGrpcReplica(const os::Endpoint& listen, Script script);
  ~FakeGrpcReplica();
  FakeGrpcReplica(const FakeGrpcReplica&) = delete;
  FakeGrpcReplica& operator=(const FakeGrpcReplica&) = delete;

  const os::Endpoint& endpoint() const { return endpoint_; }
  // Calls begun, connections made, streams the peer reset. Any thread.
  std::uint64_t calls() const { return calls_; }
  std::uint64_t connections() const { return connections_; }
  std::uint64_t resets() const { return resets_; }

 private:
  class Server;
  os::Endpoint endpoint_;
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<std::uint64_t> connections_ = 0;
  std::atomic<std::uint64_t> resets_ = 0;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace septet::test
