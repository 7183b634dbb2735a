// septet serve: one inference server on this device.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "base/text.h"
#include "os/event_loop.h"
#include "serve/edge/http_frontend.h"
#include "serve/edge/memory_fault.h"
#include "serve/edge/onnx_runtime.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kHttpPort = 8000;

struct ServeWords {
  std::vector<std::string> repositories;
  std::vector<std::string> models;
  std::vector<std::string> listen;
  std::string http_address = "0.0.0.0";
  int http_port = kHttpPort;
  std::string control_mode;
  bool strict_readiness = true;
  int intra_op_threads = 1;
  int instances = 0;       // of each model; 0 = as its configuration says
  int fault_allocate = 0;  // MiB per second from SIGUSR2 on; for isolation experiments
  std::uint64_t max_input_bytes = std::uint64_t{64} << 20;
  int exit_timeout_s = 30;
  bool exit_with_parent = false;
};

void complain(const Error& error) { fmt::print(stderr, "septet: {}\n", error.text()); }

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

// False when the parent is gone already.
bool follow_parent() {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return ::getppid() == parent;
}

Result<std::vector<os::Endpoint>> endpoints_of(const ServeWords& words) {
  std::vector<std::string> texts = words.listen;
  if (texts.empty()) {
    texts.push_back(fmt::format("{}:{}", words.http_address, words.http_port));
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

// Everything that runs, in the order of its making; taken apart in reverse.
class Server {
 public:
  explicit Server(const ServeWords& words)
      : words_(words),
        onnx_({.intra_op_threads = words.intra_op_threads}),
        store_(words.repositories, {&onnx_},
               {.instances =
                    words.instances > 0 ? std::optional<int>(words.instances) : std::nullopt}),
        server_({.version = SEPTET_VERSION,
                 .readiness = words.strict_readiness
                                  ? serve::InferenceServerOptions::Readiness::kAllModels
                                  : serve::InferenceServerOptions::Readiness::kServer,
                 .control = words.control_mode == "explicit"
                                ? serve::InferenceServerOptions::Control::kExplicit
                                : serve::InferenceServerOptions::Control::kNone},
                store_),
        frontend_(server_),
        http_(loop_, frontend_, {.max_body_bytes = words.max_input_bytes}),
        stop_(loop_, [this] { drain(); }) {}

  int run() {
    const auto endpoints = endpoints_of(words_);
    if (!endpoints.ok()) {
      complain(endpoints.error());
      return exit_code(endpoints.error().kind);
    }
    auto names = words_.models.empty() && words_.control_mode != "explicit"
                     ? store_.names()
                     : Result<std::vector<std::string>>(words_.models);
    if (!names.ok()) {
      complain(names.error());
      return exit_code(names.error().kind);
    }
    for (const os::Endpoint& endpoint : *endpoints) {
      const auto listening = http_.listen(endpoint);
      if (!listening.ok()) {
        complain(listening.error());
        return exit_code(listening.error().kind);
      }
      fmt::print(stderr, "septet: listening on {}\n", listening->text());
    }
    server_.load_at_start(std::move(*names), complain, [this] { report(); });
    loop_.run();
    store_.drain_all();
    return 0;
  }

 private:
  void report() {
    for (const serve::IndexEntry& entry : store_.index(true)) {
      fmt::print(stderr, "septet: model {} version {} is ready\n", entry.name, entry.version);
    }
    fmt::print(stderr, "septet: {}\n", server_.is_ready() ? "ready" : "not ready");
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
  serve::OnnxRuntime onnx_;
  serve::ModelStore store_;
  serve::InferenceServer server_;
  serve::HttpFrontend frontend_;
  serve::HttpServer http_;
  StopSignal stop_;
  bool draining_ = false;
  Instant deadline_{};
};

int serve(const ServeWords& words) {
  if (words.exit_with_parent && !follow_parent()) {
    complain(make_error(ErrorKind::kPrecondition, "the parent process has gone already"));
    return exit_code(ErrorKind::kPrecondition);
  }
  raise_descriptor_limit();
  std::optional<serve::MemoryFault> fault;  // before any other thread: it blocks its signal
  if (words.fault_allocate > 0) {
    fault.emplace(words.fault_allocate);
  }
  Server server(words);
  return server.run();
}

}  // namespace

void add_serve(CLI::App& app, const Globals& /*globals*/, Action& action) {
  auto words = std::make_shared<ServeWords>();
  CLI::App* verb = app.add_subcommand("serve", "One inference server (KServe v2) on this device");
  verb->add_option("--model-repository,--model-store", words->repositories,
                   "Folder of models, each with config.pbtxt and numbered versions")
      ->required()
      ->type_name("DIR");
  verb->add_option("--model,--load-model", words->models,
                   "Load only these at start (again for more)")
      ->type_name("NAME");
  verb->add_option("--listen", words->listen, "HOST:PORT or unix:/path (again for more)")
      ->type_name("ENDPOINT");
  verb->add_option("--http-address", words->http_address, "Address when --listen is not given");
  verb->add_option("--http-port", words->http_port, "Port when --listen is not given")
      ->check(CLI::Range(0, 65535));
  verb->add_option("--model-control-mode", words->control_mode, "none or explicit")
      ->check(CLI::IsMember({"none", "explicit"}));
  verb->add_option("--strict-readiness", words->strict_readiness, "Ready only when every model is");
  verb->add_option("--intra-op-threads", words->intra_op_threads,
                   "Threads of one inference; a model's own parameter wins")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--instances", words->instances,
                   "Instances of each model, whatever its configuration says")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--fault-allocate", words->fault_allocate)->group("");
  verb->add_option("--http-max-input-size", words->max_input_bytes, "Largest request body, bytes")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31));
  verb->add_option("--exit-timeout-secs", words->exit_timeout_s,
                   "How long SIGTERM waits for what is in flight")
      ->check(CLI::Range(0, 86400));
  verb->add_flag("--exit-with-parent", words->exit_with_parent,
                 "End when the process that started this one ends");
  verb->callback([words, &action] { action = [words] { return serve(*words); }; });
}

}  // namespace septet::app
