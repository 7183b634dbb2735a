// LedgerDriver: plays the world around a lend::Ledger in tests: a clock that is moved by hand,
// preparation that succeeds, processes that end when asked (or refuse to), and a record of what
// holders were told.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "lend/ledger.h"

namespace septet::testing {

// Seven 1g.5gb and their GPU's name.
inline std::vector<lend::Partition> seven_slices(unsigned gpu = 0) {
  std::vector<lend::Partition> partitions;
  for (unsigned i = 0; i < 7; ++i) {
    lend::Partition partition;
    partition.id = lend::PartitionId(fmt::format("MIG-{}-{}", gpu, i));
    partition.gpu = gpu::GpuUuid(fmt::format("GPU-{}", gpu));
    partition.index = fmt::format("{}:{}", gpu, i + 7);
    partition.profile = "1g.5gb";
    partition.memory_mib = 4864;
    partition.share_permille = 142;
    partition.mps_clients = 48;
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

inline lend::Partition whole_gpu(unsigned gpu = 0) {
  lend::Partition partition;
  partition.id = lend::PartitionId(fmt::format("GPU-{}", gpu));
  partition.gpu = gpu::GpuUuid(fmt::format("GPU-{}", gpu));
  partition.index = fmt::format("{}", gpu);
  partition.profile = "gpu";
  partition.memory_mib = 40960;
  partition.share_permille = 1000;
  partition.mps_clients = 48;
  return partition;
}

class LedgerDriver {
 public:
  explicit LedgerDriver(lend::Policy policy = {}) : ledger_(std::move(policy)) {}

  lend::Ledger& ledger() { return ledger_; }
  Instant now() const { return now_; }

  void send(const lend::Event& event) {
    ledger_.step(now_, event);
    work_off();
  }

  void observe(std::vector<lend::Partition> partitions,
               std::vector<lend::OfferedProfile> offered = {}) {
    send(lend::PartitionsObserved{std::move(partitions), std::move(offered)});
  }

  // The daemon dies and comes back: only what was written is left.
  void restart() {
    std::vector<lend::Lease> left;
    std::uint64_t last = 0;
    for (const auto& [id, lease] : saved_) {
      last = std::max(last, id.value());
      if (lease.state != lend::LeaseState::kEnded) {
        left.push_back(lease);
      }
    }
    const std::vector<lend::Partition> partitions = ledger_.partitions();
    ledger_ = lend::Ledger(ledger_.policy());
    ledger_.restore(now_, std::move(left), lend::LeaseId(last + 1));
    observe(partitions);
  }

  // Moves time on, stopping at every deadline on the way as the daemon does.
  void pass(Duration time) {
    const Instant end = now_ + time;
    while (const auto next = ledger_.next_deadline()) {
      if (*next > end) {
        break;
      }
      now_ = *next;
      send(lend::TimePassed{});
    }
    now_ = end;
    send(lend::TimePassed{});
  }

  static lend::LeaseRequest request(unsigned uid, const char* slice) {
    lend::LeaseRequest wanted;
    wanted.owner = {lend::UserId(uid), fmt::format("user{}", uid), {}};
    const auto want = lend::parse_slice_want(slice);
    CHECK(want.ok());
    wanted.want = *want;
    wanted.time = std::chrono::hours(1);
    return wanted;
  }

  static lend::LeaseRequest queued(lend::LeaseRequest wanted) {
    wanted.when_busy = lend::WhenBusy::kQueue;
    return wanted;
  }

  static lend::LeaseRequest with_priority(lend::LeaseRequest wanted, lend::Priority priority) {
    wanted.priority = priority;
    return wanted;
  }

  lend::LeaseId ask(lend::LeaseRequest wanted) {
    const lend::LeaseId id = ledger_.next_id();
    send(lend::LeaseRequested{id, std::move(wanted)});
    return id;
  }

  void release(lend::LeaseId id, unsigned by) {
    send(lend::ReleaseRequested{id, lend::UserId(by)});
  }

  void see(lend::LeaseId id, lend::Activity activity) {
    send(lend::ActivityObserved{id, now_, activity});
  }

  // From now on processes of this lease end only when killed; or not even then.
  void make_stubborn(lend::LeaseId id) { stubborn_.insert(id); }
  void make_immortal(lend::LeaseId id) { immortal_.insert(id); }
  // Preparations are answered by the test from now on.
  void hold_preparations() { answers_preparations_ = false; }

  // "queued", "active", ..., or "ended" for what is gone.
  std::string state(lend::LeaseId id) const {
    const auto found = ledger_.leases().find(id);
    return found == ledger_.leases().end() ? "ended" : to_string(found->second.state);
  }
  const lend::Lease& lease(lend::LeaseId id) const { return ledger_.leases().at(id); }
  std::string partition_of(lend::LeaseId id) const {
    return lease(id).holdings.at(0).partition.value();
  }
  std::optional<Error> refusal(lend::LeaseId id) const {
    const auto found = refusals_.find(id);
    return found == refusals_.end() ? std::nullopt : std::optional(found->second);
  }
  lend::EndReason ended_for(lend::LeaseId id) const {
    const auto found = ends_.find(id);
    return found == ends_.end() ? lend::EndReason::kNone : found->second;
  }
  // What was told and done, oldest first: "warn 3 idle", "kill 4", ...
  const std::vector<std::string>& journal() const { return journal_; }
  bool happened(const std::string& line) const {
    return std::find(journal_.begin(), journal_.end(), line) != journal_.end();
  }
  // The last state that was written of every lease, as a ledger file holds it.
  const std::map<lend::LeaseId, lend::Lease>& saved() const { return saved_; }
  const std::optional<lend::ChangeLayout>& layout_wish() const { return layout_wish_; }
  void forget_layout_wish() { layout_wish_.reset(); }

 private:
  void work_off() {
    for (std::vector<lend::Command> commands = ledger_.take_commands(); !commands.empty();
         commands = ledger_.take_commands()) {
      for (const lend::Command& command : commands) {
        std::visit([this](const auto& each) { execute(each); }, command);
      }
    }
  }
  void note(const char* what, lend::LeaseId id, const char* detail = "") {
    journal_.push_back(*detail == '\0' ? fmt::format("{} {}", what, id.value())
                                       : fmt::format("{} {} {}", what, id.value(), detail));
  }

  void execute(const lend::SaveLease& command) {
    saved_.insert_or_assign(command.lease.id, command.lease);
  }
  void execute(const lend::PrepareLease& command) {
    if (answers_preparations_) {
      ledger_.step(now_, lend::PreparationSucceeded{command.lease.id});
    }
  }
  void execute(const lend::TellGranted& command) { note("granted", command.id); }
  void execute(const lend::TellQueued& command) { note("queued", command.id); }
  void execute(const lend::TellRefused& command) {
    refusals_.insert_or_assign(command.id, command.error);
    note("refused", command.id);
  }
  void execute(const lend::TellRenewed& command) { note("renewed", command.id); }
  void execute(const lend::WarnHolder& command) {
    note("warn", command.id, to_string(command.reason));
  }
  void execute(const lend::WithdrawWarning& command) { note("unwarn", command.id); }
  void execute(const lend::AskToEnd& command) {
    note("ask", command.id, to_string(command.reason));
    if (!stubborn_.contains(command.id) && !immortal_.contains(command.id)) {
      ledger_.step(now_, lend::LeaseCleared{command.id});
    }
  }
  void execute(const lend::KillProcesses& command) {
    note("kill", command.id);
    if (!immortal_.contains(command.id)) {
      ledger_.step(now_, lend::LeaseCleared{command.id});
    }
  }
  void execute(const lend::TellEnded& command) {
    ends_.insert_or_assign(command.id, command.reason);
    note("ended", command.id, to_string(command.reason));
  }
  void execute(const lend::PauseProcesses& command) { note("pause", command.id); }
  void execute(const lend::ResumeProcesses& command) { note("resume", command.id); }
  void execute(const lend::ChangeLayout& command) {
    note("layout", command.id);
    layout_wish_ = command;
  }

  lend::Ledger ledger_;
  Instant now_ = Instant(seconds(1000));
  bool answers_preparations_ = true;
  std::set<lend::LeaseId> stubborn_;
  std::set<lend::LeaseId> immortal_;
  std::map<lend::LeaseId, Error> refusals_;
  std::map<lend::LeaseId, lend::EndReason> ends_;
  std::map<lend::LeaseId, lend::Lease> saved_;
  std::vector<std::string> journal_;
  std::optional<lend::ChangeLayout> layout_wish_;
};

}  // namespace septet::testing
