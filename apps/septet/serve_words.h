// ServeWords: what the flags of `septet serve` say, and what follows from them. Private to the
// verb.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "os/endpoint.h"
#include "serve/edge/inference_server.h"
#include "serve/edge/timed_backend.h"
#include "serve/rate_limiter.h"

namespace septet::app {

inline constexpr std::uint16_t kServeHttpPort = 8000;
inline constexpr std::uint16_t kServeGrpcPort = 8001;

struct ServeWords {
  std::vector<std::string> repositories;
  std::vector<std::string> models;
  std::vector<std::string> listen;
  std::string grpc_listen;
  std::string http_address = "0.0.0.0";
  int http_port = kServeHttpPort;
  std::string grpc_address = "0.0.0.0";
  int grpc_port = kServeGrpcPort;
  int metrics_port = 0;
  bool allow_http = true;
  bool allow_grpc = true;
  std::string control_mode = "none";
  int poll_s = 15;
  bool strict_readiness = true;
  std::string rate_limit = "off";
  std::vector<std::string> rate_limit_resources;
  int intra_op_threads = 1;
  int instances = 0;       // of each model; 0 = as its configuration says
  int fault_allocate = 0;  // MiB per second from SIGUSR2 on; for isolation experiments
  std::uint64_t max_input_bytes = std::uint64_t{64} << 20;
  std::uint64_t cache_bytes = 0;
  int exit_timeout_s = 30;
  bool exit_with_parent = false;
  bool allow_client_shm = true;
  std::vector<std::string> restrict_http;
  std::vector<std::string> restrict_grpc;
  std::vector<std::string> restrict_both;
  std::string grpc_certificate;
  std::string grpc_key;
  std::string http_certificate;
  std::string http_key;
  std::vector<std::string> trace_config;
  unsigned verbose = 0;
  serve::TimedBackendOptions timed;
};

void add_serve_words(CLI::App& verb, ServeWords& words);

// Where HTTP is served: what --listen says, else Triton's ports.
Result<std::vector<os::Endpoint>> http_endpoints(const ServeWords& words);
Result<serve::InferenceServerOptions> server_options(const ServeWords& words);
// What --rate-limit-resource says.
Result<std::vector<serve::RatePool>> rate_pools(const ServeWords& words);

}  // namespace septet::app
