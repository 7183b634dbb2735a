// septet lend-daemon: owns the ledger of leases and answers on a Unix socket until it is told to
// end.

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <filesystem>
#include <memory>

#include "agent/edge/lease_client.h"
#include "agent/edge/lend_config.h"
#include "agent/edge/lend_service.h"
#include "agent/edge/sharing_drivers.h"
#include "gpu/edge/open_driver.h"
#include "os/event_loop.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

struct Words {
  std::string socket;
  std::string ledger;
  std::string config;
};

// Ends the loop at the first request to end.
class EndSignals : private os::EventLoop::Watcher {
 public:
  static Result<std::unique_ptr<EndSignals>> start(os::EventLoop& loop) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&set, signal);
    }
    sigprocmask(SIG_BLOCK, &set, nullptr);
    std::unique_ptr<EndSignals> signals(
        new EndSignals(loop, os::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK))));
    SEPTET_TRY(loop.watch(signals->fd_.get(), EPOLLIN, *signals));
    return signals;
  }
  ~EndSignals() override { loop_.unwatch(fd_.get()); }

 private:
  EndSignals(os::EventLoop& loop, os::UniqueFd fd) : loop_(loop), fd_(std::move(fd)) {}
  void on_ready(std::uint32_t /*events*/) override { loop_.stop(); }

  os::EventLoop& loop_;
  os::UniqueFd fd_;
};

int lend_daemon(const Words& words, const Globals& globals) {
  const agent::DaemonPaths standard = agent::default_daemon_paths();
  agent::LendServiceOptions options;
  options.socket = words.socket.empty() ? standard.socket : words.socket;
  options.ledger = words.ledger.empty() ? standard.ledger : words.ledger;
  if (!words.config.empty()) {
    const Result<agent::LendConfig> read = agent::read_lend_config(words.config);
    if (!read.ok()) {
      return fail(read.error(), globals.output);
    }
    options.config = *read;
  }
  const Result<std::unique_ptr<gpu::GpuDriver>> driver = gpu::open_driver(globals.simulate);
  if (!driver.ok()) {
    return fail(driver.error(), globals.output);
  }
  const Result<gpu::DriverInfo> info = (*driver)->info();
  if (!info.ok()) {
    return fail(info.error(), globals.output);
  }
  os::EventLoop loop;
  const auto signals = EndSignals::start(loop);
  if (!signals.ok()) {
    return fail(signals.error(), globals.output);
  }
  const auto sharing = agent::make_sharing_driver(
      *info, std::filesystem::path(options.socket).parent_path().string());
  const auto service = agent::LendService::start(loop, **driver, sharing.get(), options);
  if (!service.ok()) {
    return fail(service.error(), globals.output);
  }
  fmt::print(stderr, "septet: lending {} partitions on {}; ledger {}{}{}\n",
             (*service)->lender().ledger().partitions().size(), options.socket, options.ledger,
             (*service)->note().empty() ? "" : "; ", (*service)->note());
  loop.run();
  return 0;
}

}  // namespace

void add_lend_daemon(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand("lend-daemon", "Own the leases of this machine");
  const auto words = std::make_shared<Words>();
  verb->add_option("--socket", words->socket, "Where to listen")->type_name("PATH");
  verb->add_option("--ledger", words->ledger, "Where to keep the ledger")->type_name("PATH");
  verb->add_option("--config", words->config, "septet.yaml: its parts 'lend:' and 'sharing:'")
      ->type_name("FILE");
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return lend_daemon(*words, globals); };
  });
}

}  // namespace septet::app
