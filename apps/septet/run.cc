// septet run: a command on a borrowed slice, in the caller's terminal, as the caller.
//
// We hold the lease by our connection: when the command ends, or we do, the slice is given back.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>

#include "agent/edge/error_json.h"
#include "agent/edge/lease_client.h"
#include "base/units.h"
#include "lease_words.h"
#include "os/clock.h"
#include "os/foreground_command.h"

namespace septet::app {
namespace {

using agent::LeaseClient;
using agent::NewsStream;
using lend::Json;

// The daemon may be restarted meanwhile; as long as this we ask for it again.
constexpr Duration kReconnectFor = std::chrono::minutes(10);
constexpr int kReconnectEveryMs = 1000;
// Of the daemon, between the grant and the start of the command.
constexpr int kMostRestarts = 3;
// How long we wait to hear that the slice is back before we end.
constexpr Duration kReturnPatience = seconds(5);
constexpr Duration kQueuePatience = std::chrono::hours(24 * 365);

struct Words {
  LeaseWords lease;
  std::string checkpoint;
  bool quiet = false;
  std::vector<std::string> command;
};

class Run {
 public:
  Run(const Words& words, const Globals& globals)
      : words_(words), globals_(globals), client_(agent::lease_socket_path()) {}

  int run() {
    Result<Json> request = request_json(words_.lease);
    if (!request.ok()) {
      return fail(request.error(), globals_.output);
    }
    (*request)["attached"] = true;
    (*request)["stream"] = true;
    (*request)["checkpoint_hook"] = !words_.checkpoint.empty();
    Result<std::unique_ptr<NewsStream>> stream = client_.stream("/v1/leases", *request);
    if (!stream.ok()) {
      return fail(stream.error(), globals_.output);
    }
    stream_ = *std::move(stream);
    if (const Result<Ok> granted = wait_for_grant(); !granted.ok()) {
      return fail(granted.error(), globals_.output);
    }
    Result<os::ForegroundCommand> command =
        os::ForegroundCommand::start(words_.command, environment());
    if (!command.ok()) {
      return fail(command.error(), globals_.output);
    }
    if (const Result<Ok> started = start(*command); !started.ok()) {
      give_back();
      return fail(started.error(), globals_.output);
    }
    const os::ExitStatus status = watch(*command);
    give_back();
    return os::shell_exit_code(status);
  }

 private:
  void say(const std::string& text) const {
    if (!words_.quiet) {
      fmt::print(stderr, "septet: {}\n", text);
    }
  }

  Result<Ok> wait_for_grant() {
    for (;;) {
      Result<std::optional<Json>> news = stream_->next(kQueuePatience);
      SEPTET_TRY(news);
      if (!news->has_value()) {
        if (id_ == 0) {
          return make_error(ErrorKind::kFailed, "the lease daemon ended before it answered",
                            "try again");
        }
        SEPTET_TRY(hold_again([] { return false; }));
        continue;
      }
      const Json& json = **news;
      const std::string event = json.value("event", std::string());
      if (event == "granted") {
        granted_ = json;
        id_ = json.at("lease").at("id").get<std::uint64_t>();
        announce();
        return Ok{};
      }
      if (event == "refused") {
        return agent::error_from_json(json);
      }
      if (event == "queued") {
        id_ = json.value("id", std::uint64_t{0});
        say(fmt::format("lease {} waits, number {} in the queue{}", json.value("id", 0),
                        json.value("position", 0),
                        json.value("waits_for_quota", false) ? ", for your quota" : ""));
      }
    }
  }

  // The daemon went away while we need it: asks again until it knows us.
  Result<Ok> hold_again(const std::function<bool()>& gives_up) {
    say("the lease daemon went away; we wait for it");
    const Instant deadline = os::now() + kReconnectFor;
    for (;;) {
      Result<std::unique_ptr<NewsStream>> stream =
          client_.stream(fmt::format("/v1/leases/{}/attach", id_), Json::object());
      if (stream.ok()) {
        stream_ = *std::move(stream);
        say(fmt::format("lease {} is held again", id_));
        return Ok{};
      }
      if (stream.error().kind != ErrorKind::kPrecondition || os::now() > deadline || gives_up()) {
        return stream.error();
      }
      ::poll(nullptr, 0, kReconnectEveryMs);
    }
  }

  void announce() const {
    const Json& lease = granted_.at("lease");
    const std::string note = granted_.value("note", std::string());
    say(fmt::format("lease {}: {}, limits {}{}", id_, partition_text(lease),
                    lease.value("limits", std::string("advisory")),
                    note.empty() ? "" : "; " + note));
  }

  std::vector<std::pair<std::string, std::optional<std::string>>> environment() const {
    std::vector<std::pair<std::string, std::optional<std::string>>> variables;
    for (const Json& variable : granted_.at("variables")) {
      const Json& value = variable.at("value");
      variables.emplace_back(
          variable.at("name").get<std::string>(),
          value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
    }
    return variables;
  }

  // Limits first, then the command: nothing of it runs outside them.
  Result<Ok> start(os::ForegroundCommand& command) {
    for (int restarts = 0;; ++restarts) {
      const Result<Json> added = client_.call("POST", fmt::format("/v1/leases/{}/processes", id_),
                                              {{"pid", command.pid()}});
      if (added.ok()) {
        return command.open_gate();
      }
      if (added.error().kind != ErrorKind::kPrecondition || restarts == kMostRestarts) {
        return added.error();
      }
      SEPTET_TRY(hold_again([&] { return command.next_signal() != 0; }));
    }
  }

  os::ExitStatus watch(os::ForegroundCommand& command) {
    for (;;) {
      std::array<pollfd, 3> entries{{{command.pid_fd(), POLLIN, 0},
                                     {command.signal_fd(), POLLIN, 0},
                                     {stream_ ? stream_->fd() : -1, POLLIN, 0}}};
      const bool searches = !stream_ && os::now() < reconnect_until_;
      ::poll(entries.data(), entries.size(), searches ? kReconnectEveryMs : -1);
      while (const int signal = command.next_signal()) {
        pass_on(command, signal);
      }
      if (const auto status = command.poll_exit()) {
        return *status;
      }
      if (stream_) {
        hear(command);
      } else if (searches) {
        reconnect();
      }
    }
  }

  static void pass_on(os::ForegroundCommand& command, int signal) {
    // Typed keys reach the command by the terminal; without one we are the only way.
    const bool by_terminal = (signal == SIGINT || signal == SIGQUIT) && isatty(STDIN_FILENO) == 1;
    if (!by_terminal) {
      command.send_signal(signal);
    }
  }

  void hear(os::ForegroundCommand& command) {
    for (;;) {
      const Result<std::optional<Json>> news = stream_->poll();
      if (!news.ok() || !news->has_value()) {
        break;
      }
      react(command, **news);
    }
    if (stream_->ended()) {
      stream_.reset();
      if (!ended_) {
        say("the lease daemon went away; the command goes on, and we ask for it again");
        reconnect_until_ = os::now() + kReconnectFor;
      }
    }
  }

  void react(os::ForegroundCommand& command, const Json& json) {
    const std::string event = json.value("event", std::string());
    const std::string reason = json.value("reason", std::string());
    const Duration left = from_seconds(json.value("seconds", 0.0));
    if (event == "warned") {
      const std::string when = format_duration(seconds(left / seconds(1)));
      say(reason == "idle"
              ? fmt::format("lease {} is idle; it is taken back in {} unless it works", id_, when)
              : fmt::format("lease {} ends in {} ({}); septet lease renew {} --for TIME keeps it",
                            id_, when, reason, id_));
    } else if (event == "warning_withdrawn") {
      say(fmt::format("lease {} goes on", id_));
    } else if (event == "ending") {
      say(fmt::format("lease {} ends ({}); the command is asked to end", id_, reason));
      if (!words_.checkpoint.empty()) {
        checkpoint(command, left);
      }
    } else if (event == "ended") {
      ended_ = true;
    }
  }

  // As the caller, never by the daemon; then the command is asked to end.
  void checkpoint(os::ForegroundCommand& command, Duration at_most) {
    os::ProcessOptions hook;
    hook.arguments = {"sh", "-c", words_.checkpoint};
    hook.environment = {{"SEPTET_LEASE", fmt::format("{}", id_)},
                        {"SEPTET_PID", fmt::format("{}", command.pid())}};
    Result<os::Process> process = os::Process::start(hook);
    if (!process.ok()) {
      say(process.error().text());
    } else if (const auto status = process->wait(at_most); !status || !status->success()) {
      say(fmt::format("the checkpoint hook {}",
                      status ? "failed: " + status->text() : std::string("took too long")));
    }
    command.send_signal(SIGTERM);
  }

  void reconnect() {
    Result<std::unique_ptr<NewsStream>> stream =
        client_.stream(fmt::format("/v1/leases/{}/attach", id_), Json::object());
    if (stream.ok()) {
      stream_ = *std::move(stream);
      say(fmt::format("lease {} is held again", id_));
    } else if (stream.error().kind != ErrorKind::kPrecondition) {
      // The daemon is there and does not know us: nothing is left to hold.
      say(stream.error().text());
      reconnect_until_ = os::now();
    }
  }

  void give_back() {
    if (ended_ || !client_.call("DELETE", fmt::format("/v1/leases/{}", id_)).ok() || !stream_) {
      return;
    }
    const Instant deadline = os::now() + kReturnPatience;
    while (!ended_ && os::now() < deadline) {
      const Result<std::optional<Json>> news = stream_->next(deadline - os::now());
      if (!news.ok() || !news->has_value()) {
        return;
      }
      ended_ = (**news).value("event", std::string()) == "ended";
    }
  }

  const Words& words_;
  const Globals& globals_;
  LeaseClient client_;
  std::unique_ptr<NewsStream> stream_;
  Json granted_;
  std::uint64_t id_ = 0;
  bool ended_ = false;
  Instant reconnect_until_{};
};

}  // namespace

void add_run(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand("run", "Run a command on a borrowed slice");
  const auto words = std::make_shared<Words>();
  add_lease_options(*verb, words->lease);
  verb->add_option("--checkpoint", words->checkpoint,
                   "Shell command to run before the slice is taken back");
  verb->add_flag("-q,--quiet", words->quiet, "Say nothing but errors");
  verb->add_option("command", words->command, "The command, behind --")->required();
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return Run(*words, globals).run(); };
  });
}

}  // namespace septet::app
