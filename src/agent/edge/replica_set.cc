#include "agent/edge/replica_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "agent/edge/ready_probe.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/event_loop.h"

namespace septet::agent {
namespace {

constexpr Duration kLookInterval = milliseconds(20);  // at the interrupted flag while waiting

// The last line with anything in it; logs of replicas are short.
std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::string last;
  while (std::getline(file, line)) {
    if (!trim(line).empty()) {
      last = line;
    }
  }
  return last;
}

// One replica in the set's thread: carries out what its supervisor decides.
class Replica : os::EventLoop::Watcher {
 public:
  Replica(os::EventLoop& loop, ReplicaSpec spec, const SupervisorOptions& options,
          std::function<void()> on_news)
      : loop_(loop), spec_(std::move(spec)), supervisor_(options), on_news_(std::move(on_news)) {}
  ~Replica() override {
    loop_.cancel(timer_);
    forget_process();
  }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  void handle(const SupervisorEvent& event) {
    events_.push_back(event);
    if (events_.size() > 1) {
      return;  // the call that is carrying out commands goes on with it
    }
    while (!events_.empty()) {
      supervisor_.step(os::now(), events_.front());
      for (const SupervisorCommand& command : supervisor_.take_commands()) {
        std::visit([this](const auto& wanted) { carry_out(wanted); }, command);
      }
      events_.pop_front();
    }
    arm_timer();
    on_news_();
  }

  ReplicaStatus status() const {
    return {.name = spec_.name,
            .state = supervisor_.state(),
            .pid = process_ ? process_->pid() : 0,
            .restarts = supervisor_.restarts(),
            .last_failure = supervisor_.last_failure()};
  }

  void send_signal(int signal) {
    if (process_) {
      process_->send_signal(signal);
    }
  }

 private:
  void carry_out(const StartProcess& command) {
    forget_process();
    attempt_ = command.attempt;
    const os::UniqueFd log(
        open(spec_.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log.valid()) {
      handle(ProcessStartFailed{
          attempt_, fmt::format("cannot write {}: {}", spec_.log_path, std::strerror(errno))});
      return;
    }
    os::ProcessOptions options = spec_.process;
    options.standard_output = log.get();
    options.standard_error = log.get();
    Result<os::Process> process = os::Process::start(options);
    if (!process.ok()) {
      handle(ProcessStartFailed{attempt_, process.error().text()});
      return;
    }
    process_.emplace(*std::move(process));
    const Result<Ok> watched = loop_.watch(process_->pid_fd(), EPOLLIN, *this);
    if (!watched.ok()) {
      process_.reset();
      handle(ProcessStartFailed{attempt_, watched.error().text()});
      return;
    }
    handle(ProcessStarted{attempt_});
  }
  void carry_out(const Probe& command) {
    const std::uint64_t number = command.probe;
    probe_ = std::make_unique<ReadyProbe>(loop_, spec_.endpoint, spec_.health_target,
                                          command.timeout, [this, number](bool ready) {
                                            handle(ProbeAnswered{number, ready});
                                          });
  }
  void carry_out(const AskToEnd& command) { signal_attempt(command.attempt, SIGTERM); }
  void carry_out(const Kill& command) { signal_attempt(command.attempt, SIGKILL); }
  // Who sends requests reads it off the states, when on_news_ is called.
  void carry_out(const AnnounceReady&) {}
  void carry_out(const AnnounceGone&) {}

  void signal_attempt(std::uint64_t attempt, int signal) {
    if (process_ && attempt == attempt_) {
      process_->signal_group(signal);
    }
  }

  // The process has ended.
  void on_ready(std::uint32_t /*events*/) override {
    const std::optional<os::ExitStatus> status = process_->poll_exit();
    if (status) {
      forget_process();
      handle(ProcessEnded{attempt_, status->text()});
    }
  }

  void forget_process() {
    if (process_) {
      loop_.unwatch(process_->pid_fd());
      process_.reset();
    }
  }

  void arm_timer() {
    loop_.cancel(timer_);
    if (const auto deadline = supervisor_.next_deadline()) {
      timer_ = loop_.call_at(*deadline, [this] { handle(TimePassed{}); });
    }
  }

  os::EventLoop& loop_;
  ReplicaSpec spec_;
  ReplicaSupervisor supervisor_;
  std::function<void()> on_news_;
  std::deque<SupervisorEvent> events_;
  std::uint64_t attempt_ = 0;
  std::optional<os::Process> process_;
  std::unique_ptr<ReadyProbe> probe_;
  os::EventLoop::Timer timer_;
};

std::vector<std::string> ready_names(const std::vector<ReplicaStatus>& statuses) {
  std::vector<std::string> names;
  for (const ReplicaStatus& status : statuses) {
    if (status.state == ReplicaState::kReady) {
      names.push_back(status.name);
    }
  }
  return names;
}

}  // namespace

class ReplicaSet::Impl {
 public:
  Impl(const SupervisorOptions& options, OnChange on_change)
      : options_(options), on_change_(std::move(on_change)), thread_([this] { loop_.run(); }) {}

  ~Impl() {
    loop_.post([this] {
      leaving_ = true;
      for (auto& [name, replica] : replicas_) {
        replica->handle(StopRequested{});
      }
      publish();
    });
    thread_.join();
  }

  Result<Ok> add(const ReplicaSpec& spec) {
    {
      const std::lock_guard lock(mutex_);
      if (find(spec.name) != nullptr) {
        return make_error(ErrorKind::kUsage,
                          fmt::format("there is a replica '{}' already", spec.name));
      }
      statuses_.push_back({.name = spec.name, .state = ReplicaState::kStarting});
      log_paths_[spec.name] = spec.log_path;
    }
    loop_.post([this, spec] {
      auto replica = std::make_unique<Replica>(loop_, spec, options_, [this] { publish(); });
      Replica& added = *replica;
      replicas_.emplace_back(spec.name, std::move(replica));
      added.handle(StartRequested{});
    });
    return Ok{};
  }

  Result<Ok> stop(const std::string& name, Duration drain) {
    return with_replica(name, [drain](Replica& replica) { replica.handle(StopRequested{drain}); });
  }

  Result<Ok> send_signal(const std::string& name, int signal) {
    {
      const std::lock_guard lock(mutex_);
      const ReplicaStatus* known = find(name);
      if (known != nullptr && known->pid == 0) {
        return make_error(ErrorKind::kPrecondition,
                          fmt::format("replica '{}' has no process now", name));
      }
    }
    return with_replica(name, [signal](Replica& replica) { replica.send_signal(signal); });
  }

  std::vector<ReplicaStatus> status() const {
    const std::lock_guard lock(mutex_);
    return statuses_;
  }

  Result<Ok> wait_ready(Duration timeout, const std::atomic<bool>& interrupted) const {
    const Instant deadline = os::now() + timeout;
    std::unique_lock lock(mutex_);
    while (true) {
      const ReplicaStatus* waiting = nullptr;
      for (const ReplicaStatus& status : statuses_) {
        if (status.state == ReplicaState::kFailed) {
          return not_ready(status);
        }
        waiting = status.state == ReplicaState::kReady ? waiting : &status;
      }
      if (waiting == nullptr) {
        return Ok{};
      }
      if (interrupted) {
        return make_error(ErrorKind::kFailed, "interrupted while waiting for the replicas");
      }
      if (os::now() >= deadline) {
        return not_ready(*waiting);
      }
      changed_.wait_for(lock, kLookInterval);
    }
  }

 private:
  template <typename Function>
  Result<Ok> with_replica(const std::string& name, Function function) {
    {
      const std::lock_guard lock(mutex_);
      if (find(name) == nullptr) {
        return make_error(ErrorKind::kNotFound, fmt::format("there is no replica '{}'", name));
      }
    }
    loop_.post([this, name, function] {
      for (auto& [known, replica] : replicas_) {
        if (known == name) {
          function(*replica);
        }
      }
    });
    return Ok{};
  }

  // The caller holds the lock.
  const ReplicaStatus* find(const std::string& name) const {
    const auto found = std::find_if(statuses_.begin(), statuses_.end(),
                                    [&](const ReplicaStatus& s) { return s.name == name; });
    return found == statuses_.end() ? nullptr : &*found;
  }

  Error not_ready(const ReplicaStatus& status) const {
    const std::string& log = log_paths_.at(status.name);
    std::string message = fmt::format("replica '{}' does not become ready", status.name);
    if (!status.last_failure.empty()) {
      message += ": " + status.last_failure;
    }
    const std::string line = last_line(log);
    return make_error(ErrorKind::kFailed, line.empty() ? message : message + "; it said: " + line,
                      fmt::format("its log is {}", log));
  }

  // In the set's thread: makes the states visible, tells the owner, ends the loop at the end.
  void publish() {
    std::vector<ReplicaStatus> statuses;
    bool all_stopped = true;
    for (const auto& [name, replica] : replicas_) {
      statuses.push_back(replica->status());
      all_stopped = all_stopped && statuses.back().state == ReplicaState::kStopped;
    }
    const std::vector<std::string> ready = ready_names(statuses);
    {
      const std::lock_guard lock(mutex_);
      // add() has listed those that the thread has not taken in yet behind these.
      std::move(statuses.begin(), statuses.end(), statuses_.begin());
    }
    changed_.notify_all();
    if (ready != ready_ && on_change_) {
      on_change_(ready);
    }
    ready_ = ready;
    if (leaving_ && all_stopped) {
      loop_.stop();
    }
  }

  SupervisorOptions options_;
  OnChange on_change_;
  os::EventLoop loop_;

  // Of the set's thread.
  std::vector<std::pair<std::string, std::unique_ptr<Replica>>> replicas_;
  std::vector<std::string> ready_;
  bool leaving_ = false;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  std::vector<ReplicaStatus> statuses_;
  std::map<std::string, std::string> log_paths_;

  std::thread thread_;  // last: it uses everything above
};

Result<std::unique_ptr<ReplicaSet>> ReplicaSet::start(const SupervisorOptions& options,
                                                      OnChange on_change) {
  return std::unique_ptr<ReplicaSet>(
      new ReplicaSet(std::make_unique<Impl>(options, std::move(on_change))));
}

ReplicaSet::ReplicaSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReplicaSet::~ReplicaSet() = default;
Result<Ok> ReplicaSet::add(const ReplicaSpec& spec) { return impl_->add(spec); }
Result<Ok> ReplicaSet::stop(const std::string& name, Duration drain) {
  return impl_->stop(name, drain);
}
Result<Ok> ReplicaSet::send_signal(const std::string& name, int signal) {
  return impl_->send_signal(name, signal);
}
std::vector<ReplicaStatus> ReplicaSet::status() const { return impl_->status(); }
Result<Ok> ReplicaSet::wait_ready(Duration timeout, const std::atomic<bool>& interrupted) const {
  return impl_->wait_ready(timeout, interrupted);
}

}  // namespace septet::agent
