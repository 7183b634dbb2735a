// SimulatedGrpcServer: a v2 server over gRPC C++ (the official implementation), for tests of
// clients.
//
// Serves the model "simulated" at once, on a free port of 127.0.0.1, from construction to
// destruction. `fails` says which inference requests (from 0) are answered with UNAVAILABLE, or on
// a stream with an error message. It is called in gRPC's threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "os/endpoint.h"

namespace septet::test {

class SimulatedGrpcServer {
 public:
  explicit SimulatedGrpcServer(std::function<bool(std::uint64_t index)> fails = {});
  ~SimulatedGrpcServer();
  SimulatedGrpcServer(const SimulatedGrpcServer&) = delete;
  SimulatedGrpcServer& operator=(const SimulatedGrpcServer&) = delete;

  os::Endpoint endpoint() const;
  // Inference requests so far, and how many calls (streams) they came in.
  std::uint64_t requests() const;
  std::uint64_t calls() const;
  // Of the latest inference request: raw bytes of its first input, and the metadata "x-team".
  std::string last_input() const;
  std::string last_team() const;
  // The shared memory region that the latest request's first input was in, and how many regions
  // are registered now.
  std::string last_region() const;
  std::size_t regions() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace septet::test
