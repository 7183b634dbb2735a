#include "serve_words.h"

#include <fmt/format.h>

namespace septet::app {

namespace {

void add_network(CLI::App& verb, ServeWords& words) {
  verb.add_option("--listen", words.listen, "HTTP on HOST:PORT or unix:/path (again for more)")
      ->type_name("ENDPOINT");
  verb.add_option("--grpc-listen", words.grpc_listen, "gRPC on HOST:PORT or unix:/path")
      ->type_name("ENDPOINT");
  verb.add_option("--http-address", words.http_address, "Address when --listen is not given");
  verb.add_option("--http-port", words.http_port, "Port when --listen is not given")
      ->check(CLI::Range(0, 65535));
  verb.add_option("--grpc-address", words.grpc_address, "Address when --listen is not given");
  verb.add_option("--grpc-port", words.grpc_port, "Port when --listen is not given")
      ->check(CLI::Range(0, 65535));
  verb.add_option("--metrics-port", words.metrics_port,
                  "One more HTTP port; /metrics is on every one")
      ->check(CLI::Range(0, 65535));
  verb.add_option("--allow-http", words.allow_http, "Serve HTTP when --listen is not given");
  verb.add_option("--allow-grpc", words.allow_grpc, "Serve gRPC when --listen is not given");
  verb.add_option("--restrict", words.restrict_both,
                  "API[,API...]:HEADER=VALUE: these calls need that header (again for more)");
  verb.add_option("--http-restricted-api", words.restrict_http, "The same for HTTP only");
  verb.add_option("--grpc-restricted-protocol", words.restrict_grpc, "The same for gRPC only");
  verb.add_option("--grpc-server-cert", words.grpc_certificate, "PEM file: TLS for gRPC");
  verb.add_option("--grpc-server-key", words.grpc_key, "PEM file: TLS for gRPC");
  verb.add_option("--http-server-cert", words.http_certificate, "PEM file: TLS for HTTP over TCP");
  verb.add_option("--http-server-key", words.http_key, "PEM file: TLS for HTTP over TCP");
  verb.add_option("--http-max-input-size", words.max_input_bytes, "Largest request body, bytes")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31));
  verb.add_option("--allow-client-shm", words.allow_client_shm,
                  "Let clients register system shared memory");
}

void add_limits(CLI::App& verb, ServeWords& words) {
  verb.add_option("--rate-limit", words.rate_limit,
                  "off, or execution_count: instances run when the resources of their rate_limiter "
                  "are free, in turns")
      ->check(CLI::IsMember({"off", "execution_count"}));
  verb.add_option("--rate-limit-resource", words.rate_limit_resources,
                  "How much there is of a resource, on one device or 'global' (again for more); "
                  "else as much as one instance needs at most")
      ->type_name("NAME:COUNT[:DEVICE]");
  verb.add_option("--exit-timeout-secs", words.exit_timeout_s,
                  "How long SIGTERM waits for what is in flight")
      ->check(CLI::Range(0, 86400));
  verb.add_flag("--exit-with-parent", words.exit_with_parent,
                "End when the process that started this one ends");
  verb.add_option("--trace-config", words.trace_config,
                  "triton,file=PATH, level=TIMESTAMPS, rate=N, count=N or triton,log-frequency=N "
                  "(again for more): timestamps of every N-th request into PATH")
      ->type_name("SETTING");
  verb.add_option("--log-verbose", words.verbose, "1 logs every request");
}

void add_models(CLI::App& verb, ServeWords& words) {
  verb.add_option("--model-repository,--model-store", words.repositories,
                  "Folder of models, each with config.pbtxt and numbered versions")
      ->required()
      ->type_name("DIR");
  verb.add_option("--model,--load-model", words.models,
                  "Load only these at start (again for more); * = all")
      ->type_name("NAME");
  verb.add_option("--model-control-mode", words.control_mode, "none, poll or explicit")
      ->check(CLI::IsMember({"none", "poll", "explicit"}));
  verb.add_option("--repository-poll-secs", words.poll_s, "How often poll mode looks")
      ->check(CLI::Range(1, 86400));
  verb.add_option("--strict-readiness", words.strict_readiness, "Ready only when every model is");
  verb.add_option("--response-cache-byte-size", words.cache_bytes,
                  "Memory for answers of models with response_cache");
  verb.add_option("--intra-op-threads", words.intra_op_threads,
                  "Threads of one inference; a model's own parameter wins")
      ->check(CLI::Range(0, 1024));
  verb.add_option("--instances", words.instances,
                  "Instances of each model, whatever its configuration says")
      ->check(CLI::Range(1, 1024));
  verb.add_option("--fault-allocate", words.fault_allocate)->group("");
  verb.add_option("--service-times", words.timed.service_times_path,
                  "CSV of service times for models of the backend 'timed'")
      ->type_name("FILE");
  verb.add_option("--slice", words.timed.slice, "Slice that 'timed' models pretend to run on");
  verb.add_option("--seed", words.timed.seed, "Seed of the variation of 'timed' models");
}

}  // namespace

void add_serve_words(CLI::App& verb, ServeWords& words) {
  add_models(verb, words);
  add_network(verb, words);
  add_limits(verb, words);
}

Result<std::vector<os::Endpoint>> http_endpoints(const ServeWords& words) {
  std::vector<std::string> texts = words.listen;
  if (texts.empty() && words.allow_http) {
    texts.push_back(fmt::format("{}:{}", words.http_address, words.http_port));
  }
  if (words.metrics_port != 0) {
    texts.push_back(fmt::format("{}:{}", words.http_address, words.metrics_port));
  }
  std::vector<os::Endpoint> endpoints;
  for (const std::string& text : texts) {
    auto endpoint = os::parse_endpoint(text, kServeHttpPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

Result<serve::InferenceServerOptions> server_options(const ServeWords& words) {
  using Options = serve::InferenceServerOptions;
  Options options{.version = SEPTET_VERSION};
  options.readiness =
      words.strict_readiness ? Options::Readiness::kAllModels : Options::Readiness::kServer;
  options.control = words.control_mode == "explicit" ? Options::Control::kExplicit
                    : words.control_mode == "poll"   ? Options::Control::kPoll
                                                     : Options::Control::kNone;
  options.allow_client_shared_memory = words.allow_client_shm;
  options.cache_bytes = words.cache_bytes;
  for (const std::string& text : words.trace_config) {
    SEPTET_TRY(serve::apply_trace_config(text, options.trace));
  }
  if (options.trace.setting.timestamps && options.trace.file.empty()) {
    return make_error(ErrorKind::kUsage, "tracing is on, but has no file to write to",
                      "add --trace-config=triton,file=PATH");
  }
  return options;
}

Result<std::vector<serve::RatePool>> rate_pools(const ServeWords& words) {
  std::vector<serve::RatePool> pools;
  for (const std::string& text : words.rate_limit_resources) {
    auto pool = serve::parse_rate_pool(text);
    if (!pool.ok()) {
      return pool.error();
    }
    pools.push_back(std::move(*pool));
  }
  return pools;
}

}  // namespace septet::app
