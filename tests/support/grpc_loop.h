// GrpcLoop: an HTTP/2 client for tests and benches of the balancer: gRPC calls or ordinary
// requests, one or a closed loop.
//
// Single-threaded; blocks until done. A connection that is cut is opened again, its calls count as
// failed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "os/endpoint.h"

namespace septet::test {

struct GrpcLoad {
  os::Endpoint target;
  enum class Kind { kCall, kRequest } kind = Kind::kCall;  // kRequest: a POST; statuses are HTTP's
  std::size_t connections = 1;
  std::size_t calls_each = 1;  // in flight on a connection
  std::uint64_t calls = 1;
  std::string path = "/inference.GRPCInferenceService/ModelInfer";
  std::string message{};  // of a call with its prefix
  std::vector<std::pair<std::string, std::string>> fields{};
  Duration give_up = seconds(100);
  std::function<void(std::uint64_t)> on_ended{};  // after each call: how many have ended
};

struct GrpcLoadResult {
  std::uint64_t answered = 0;  // with a status
  std::uint64_t failed = 0;    // status other than 0 (of a request, 200), or none
  std::map<std::string, std::uint64_t> statuses;
  std::string last_message;  // grpc-message of the last that failed
  std::string last_reply;    // data of the last reply
  std::vector<Duration> latencies;
  Duration elapsed{};
};

GrpcLoadResult run_grpc_load(const GrpcLoad& load);

// A framed ModelInferRequest for that model with so many bytes of raw input.
std::string grpc_infer_message(const std::string& model, std::size_t bytes);

}  // namespace septet::test
