// septet serve: one inference server on this device.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "os/event_loop.h"
#include "serve/edge/grpc_server.h"
#include "serve/edge/http_frontend.h"
#include "serve/edge/http_transport.h"
#include "serve/edge/memory_fault.h"
#include "serve/edge/onnx_runtime.h"
#include "serve/edge/timed_backend.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kHttpPort = 8000;
constexpr std::uint16_t kGrpcPort = 8001;

struct ServeWords {
  std::vector<std::string> repositories;
  std::vector<std::string> models;
  std::vector<std::string> listen;
  std::string grpc_listen;
  std::string http_address = "0.0.0.0";
  int http_port = kHttpPort;
  std::string grpc_address = "0.0.0.0";
  int grpc_port = kGrpcPort;
  int metrics_port = 0;
  bool allow_http = true;
  bool allow_grpc = true;
  std::string control_mode = "none";
  int poll_s = 15;
  bool strict_readiness = true;
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
  unsigned verbose = 0;
  serve::TimedBackendOptions timed;
};

int complain(const Error& error) {
  fmt::print(stderr, "septet: {}\n", error.text());
  return exit_code(error.kind);
}

// Wakes the loop when SIGTERM or SIGINT comes.
class StopSignal : private os::EventLoop::Watcher {
 public:
  StopSignal(os::EventLoop& loop, std::function<void()> on_stop)
      : loop_(loop), on_stop_(std::move(on_stop)) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    fd_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    CHECK(fd_.valid() && loop_.watch(fd_.get(), EPOLLIN, *this).ok());
  }
  ~StopSignal() override { loop_.unwatch(fd_.get()); }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

 private:
  void on_ready(std::uint32_t /*events*/) override {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) == sizeof info) {
      on_stop_();
    }
  }

  os::EventLoop& loop_;
  std::function<void()> on_stop_;
  os::UniqueFd fd_;
};

// As many descriptors as the system allows: each connection needs one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// A PEM file; empty when no path is given.
Result<std::string> read_pem(const std::string& path) {
  return path.empty() ? std::string() : serve::read_whole_file(path, std::uint64_t{1} << 20);
}

// False when the parent is gone already.
bool follow_parent() {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return ::getppid() == parent;
}

// Where HTTP is served: what --listen says, else Triton's ports.
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
    auto endpoint = os::parse_endpoint(text, kHttpPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

Result<serve::Restrictions> restrictions(const std::vector<std::string>& own,
                                         const std::vector<std::string>& both) {
  serve::Restrictions all;
  for (const auto* list : {&own, &both}) {
    for (const std::string& specification : *list) {
      SEPTET_TRY(all.add(specification));
    }
  }
  return all;
}

serve::InferenceServerOptions server_options(const ServeWords& words) {
  using Options = serve::InferenceServerOptions;
  Options options{.version = SEPTET_VERSION};
  options.readiness =
      words.strict_readiness ? Options::Readiness::kAllModels : Options::Readiness::kServer;
  options.control = words.control_mode == "explicit" ? Options::Control::kExplicit
                    : words.control_mode == "poll"   ? Options::Control::kPoll
                                                     : Options::Control::kNone;
  options.allow_client_shared_memory = words.allow_client_shm;
  options.cache_bytes = words.cache_bytes;
  return options;
}

// Everything that runs, in the order of its making; taken apart in reverse.
class Server {
 public:
  Server(const ServeWords& words, serve::Restrictions http_restrictions,
         std::shared_ptr<const serve::TlsIdentity> http_identity)
      : words_(words),
        stop_(loop_, [this] { drain(); }),
        onnx_({.intra_op_threads = words.intra_op_threads}),
        timed_(words.timed),
        store_(words.repositories, {&onnx_, &timed_},
               {.instances =
                    words.instances > 0 ? std::optional<int>(words.instances) : std::nullopt}),
        server_(server_options(words), store_),
        frontend_(server_, std::move(http_restrictions)),
        http_(loop_, frontend_,
              {.max_body_bytes = words.max_input_bytes, .tls = std::move(http_identity)}) {
    server_.log().verbose_level = words.verbose;
  }

  int run() {
    const auto endpoints = http_endpoints(words_);
    if (!endpoints.ok()) {
      return complain(endpoints.error());
    }
    const auto names = names_to_load();
    if (!names.ok()) {
      return complain(names.error());
    }
    for (const os::Endpoint& endpoint : *endpoints) {
      const auto listening = http_.listen(endpoint);
      if (!listening.ok()) {
        return complain(listening.error());
      }
      server_.log().info(fmt::format("listening on {}", listening->text()));
    }
    if (const auto started = start_grpc(); !started.ok()) {
      return complain(started.error());
    }
    if (words_.control_mode == "poll") {
      server_.follow_repository(seconds(words_.poll_s), [this] { report(); });
    } else {
      server_.load_at_start(*names, [this] { report(); });
    }
    loop_.run();
    if (grpc_) {
      grpc_->shutdown(std::max(deadline_ - loop_.now(), Duration::zero()));
    }
    store_.drain_all();
    return 0;
  }

 private:
  Result<std::vector<std::string>> names_to_load() const {
    const bool all = words_.models == std::vector<std::string>{"*"};
    if (!all && (!words_.models.empty() || words_.control_mode == "explicit")) {
      return words_.models;
    }
    return store_.names();
  }

  Result<Ok> start_grpc() {
    const bool asked = !words_.grpc_listen.empty() || (words_.listen.empty() && words_.allow_grpc);
    if (!asked) {
      return Ok{};
    }
    const std::string text = words_.grpc_listen.empty()
                                 ? fmt::format("{}:{}", words_.grpc_address, words_.grpc_port)
                                 : words_.grpc_listen;
    auto endpoint = os::parse_endpoint(text, kGrpcPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    serve::GrpcServerOptions options{.endpoint = std::move(*endpoint)};
    auto restricted = restrictions(words_.restrict_grpc, words_.restrict_both);
    if (!restricted.ok()) {
      return restricted.error();
    }
    options.restrictions = std::move(*restricted);
    for (const auto& [path, to] : {std::pair(&words_.grpc_certificate, &options.certificate),
                                   std::pair(&words_.grpc_key, &options.private_key)}) {
      auto pem = read_pem(*path);
      if (!pem.ok()) {
        return pem.error();
      }
      *to = std::move(*pem);
    }
    auto started = serve::GrpcServer::start(server_, options);
    if (!started.ok()) {
      return started.error();
    }
    grpc_ = std::move(*started);
    server_.log().info(fmt::format("gRPC on {}", grpc_->endpoint().text()));
    return Ok{};
  }

  void report() {
    for (const serve::IndexEntry& entry : store_.index(true)) {
      server_.log().info(fmt::format("model {} version {} is ready", entry.name, entry.version));
    }
    server_.log().info(server_.is_ready() ? "ready" : "not ready");
  }

  // Not ready from now on; what is in flight is answered, within the limit.
  void drain() {
    if (draining_) {
      loop_.stop();  // a second signal does not wait
      return;
    }
    draining_ = true;
    server_.start_draining();
    http_.stop_listening();
    deadline_ = loop_.now() + seconds(words_.exit_timeout_s);
    await_connections();
  }

  void await_connections() {
    if (http_.connection_count() == 0 || loop_.now() >= deadline_) {
      loop_.stop();
      return;
    }
    loop_.call_after(milliseconds(10), [this] { await_connections(); });
  }

  const ServeWords& words_;
  os::EventLoop loop_;
  StopSignal stop_;  // first of all: threads that start later inherit the blocked signals
  serve::OnnxRuntime onnx_;
  serve::TimedBackend timed_;
  serve::ModelStore store_;
  serve::InferenceServer server_;
  serve::HttpFrontend frontend_;
  serve::HttpServer http_;
  std::unique_ptr<serve::GrpcServer> grpc_;
  bool draining_ = false;
  Instant deadline_{};
};

int serve(const ServeWords& words) {
  if (words.exit_with_parent && !follow_parent()) {
    return complain(make_error(ErrorKind::kPrecondition, "the parent process has gone already"));
  }
  auto restricted = restrictions(words.restrict_http, words.restrict_both);
  if (!restricted.ok()) {
    return complain(restricted.error());
  }
  auto identity = serve::TlsIdentity::from_files(words.http_certificate, words.http_key);
  if (!identity.ok()) {
    return complain(identity.error());
  }
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);            // TLS writes without MSG_NOSIGNAL; the error tells
  std::optional<serve::MemoryFault> fault;  // before any other thread: it blocks its signal
  if (words.fault_allocate > 0) {
    fault.emplace(words.fault_allocate);
  }
  Server server(words, std::move(*restricted), std::move(*identity));
  return server.run();
}

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

void add_serve(CLI::App& app, const Globals& /*globals*/, Action& action) {
  auto words = std::make_shared<ServeWords>();
  CLI::App* verb = app.add_subcommand("serve", "One inference server (KServe v2) on this device");
  add_models(*verb, *words);
  add_network(*verb, *words);
  verb->add_option("--exit-timeout-secs", words->exit_timeout_s,
                   "How long SIGTERM waits for what is in flight")
      ->check(CLI::Range(0, 86400));
  verb->add_flag("--exit-with-parent", words->exit_with_parent,
                 "End when the process that started this one ends");
  verb->add_option("--log-verbose", words->verbose, "1 logs every request");
  verb->callback([words, &action] { action = [words] { return serve(*words); }; });
}

}  // namespace septet::app
