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
#include "serve_words.h"
#include "verb.h"

namespace septet::app {
namespace {

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

// Everything that runs, in the order of its making; taken apart in reverse.
class Server {
 public:
  Server(const ServeWords& words, serve::Restrictions http_restrictions,
         std::shared_ptr<const serve::TlsIdentity> http_identity,
         std::vector<serve::RatePool> pools, serve::InferenceServerOptions options)
      : words_(words),
        stop_(loop_, [this] { drain(); }),
        onnx_({.intra_op_threads = words.intra_op_threads}),
        timed_(words.timed),
        rate_gate_(std::move(pools)),
        store_(
            words.repositories, {&onnx_, &timed_},
            {.instances = words.instances > 0 ? std::optional<int>(words.instances) : std::nullopt,
             .rate_gate = words.rate_limit == "off" ? nullptr : &rate_gate_,
             .on_warning = [this](const std::string& text) { server_.log().warning(text); }}),
        server_(std::move(options), store_),
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
    auto endpoint = os::parse_endpoint(text, kServeGrpcPort);
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
    if (words_.restrict_grpc.empty() && words_.restrict_both.empty()) {
      frontend_.take_slot_calls();
    }
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
  serve::RateGate rate_gate_;
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
  auto pools = rate_pools(words);
  if (!pools.ok()) {
    return complain(pools.error());
  }
  auto options = server_options(words);
  if (!options.ok()) {
    return complain(options.error());
  }
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);            // TLS writes without MSG_NOSIGNAL; the error tells
  std::optional<serve::MemoryFault> fault;  // before any other thread: it blocks its signal
  if (words.fault_allocate > 0) {
    fault.emplace(words.fault_allocate);
  }
  Server server(words, std::move(*restricted), std::move(*identity), std::move(*pools),
                std::move(*options));
  return server.run();
}

}  // namespace

void add_serve(CLI::App& app, const Globals& /*globals*/, Action& action) {
  auto words = std::make_shared<ServeWords>();
  CLI::App* verb = app.add_subcommand("serve", "One inference server (KServe v2) on this device");
  add_serve_words(*verb, *words);
  verb->callback([words, &action] { action = [words] { return serve(*words); }; });
}

}  // namespace septet::app
