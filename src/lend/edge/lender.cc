#include "lend/edge/lender.h"

#include "os/clock.h"

namespace septet::lend {

namespace {

std::vector<Partition> held_partitions(const Lease& lease,
                                       const std::vector<Partition>& partitions) {
  std::vector<Partition> held;
  for (const Holding& holding : lease.holdings) {
    for (const Partition& partition : partitions) {
      if (partition.id == holding.partition) {
        held.push_back(partition);
      }
    }
  }
  return held;
}

}  // namespace

Lender::Lender(os::EventLoop& loop, LedgerFile& file, LeaseGround& ground,
               ObservePartitions observe, ChangePartitions change_layout,
               const LenderOptions& options)
    : loop_(loop),
      file_(file),
      ground_(ground),
      observe_(std::move(observe)),
      change_layout_(std::move(change_layout)),
      options_(options),
      ledger_(options.policy),
      boot_(read_clocks().boot) {}

Lender::~Lender() {
  for (os::EventLoop::Timer* timer :
       {&deadline_, &clear_timer_, &sample_timer_, &observe_timer_, &write_timer_}) {
    loop_.cancel(*timer);
  }
  for (auto& [id, timer] : adoptions_) {
    loop_.cancel(timer);
  }
}

Result<std::unique_ptr<Lender>> Lender::start(os::EventLoop& loop, LedgerFile& file,
                                              LeaseGround& ground, ObservePartitions observe,
                                              ChangePartitions change_layout,
                                              const LenderOptions& options) {
  std::unique_ptr<Lender> lender(
      new Lender(loop, file, ground, std::move(observe), std::move(change_layout), options));
  SEPTET_TRY(lender->take_over());
  return lender;
}

Result<Ok> Lender::take_over() {
  Result<LoadedLedger> loaded = file_.load(read_clocks());
  SEPTET_TRY(loaded);
  std::set<LeaseId> ids;
  for (const Lease& lease : loaded->leases) {
    ids.insert(lease.id);
  }
  ground_.end_unknown(ids);
  Result<PartitionsObserved> partitions = observe_({});
  SEPTET_TRY(partitions);
  std::set<std::int64_t> known;
  for (const Lease& lease : loaded->leases) {
    if (!lease.holds()) {
      continue;
    }
    const Result<LeaseSetting> setting =
        ground_.set_up(lease, held_partitions(lease, partitions->partitions));
    if (setting.ok()) {
      settings_[lease.id] = *setting;
    }
    for (const int pid : ground_.processes(lease.id)) {
      known.insert(pid);
    }
  }
  // Now that the processes of leases are known, whatever else holds a partition shows.
  partitions = observe_(known);
  SEPTET_TRY(partitions);
  for (const Lease& lease : loaded->leases) {
    if (lease.request.is_attached && lease.state != LeaseState::kReleasing) {
      const LeaseId id = lease.id;
      adoptions_[id] = loop_.call_after(options_.adopt_within, [this, id] {
        adoptions_.erase(id);
        holder_lost(id);
      });
    }
  }
  ledger_.restore(os::now(), std::move(loaded->leases), loaded->next_id);
  step(*std::move(partitions));
  sample_timer_ = loop_.call_after(options_.sample_every, [this] { sample(); });
  observe_timer_ = loop_.call_after(options_.observe_every, [this] { observe_partitions(); });
  return Ok{};
}

void Lender::step(const Event& event) {
  pending_.push_back(event);
  if (working_off_) {
    return;
  }
  working_off_ = true;
  while (!pending_.empty()) {
    const Event next = std::move(pending_.front());
    pending_.erase(pending_.begin());
    ledger_.step(os::now(), next);
    work_off();
  }
  working_off_ = false;
  arm_deadline();
}

void Lender::work_off() {
  const std::vector<Command> commands = ledger_.take_commands();
  if (!save(commands)) {
    refuse_unwritten(commands);
    return;
  }
  for (const Command& command : commands) {
    execute(command);
  }
}

bool Lender::save(const std::vector<Command>& commands) {
  bool any = false;
  for (const Command& command : commands) {
    if (const auto* each = std::get_if<SaveLease>(&command)) {
      unwritten_.insert_or_assign(each->lease.id, each->lease);
      any = true;
    }
  }
  if (!any) {
    return true;
  }
  std::vector<Lease> leases;
  for (const auto& [id, lease] : unwritten_) {
    leases.push_back(lease);
  }
  ClockReading clocks{os::now(), os::unix_time_ns(), boot_};
  const Result<Ok> saved = file_.save(leases, clocks);
  if (saved.ok()) {
    unwritten_.clear();
    trouble_.clear();
    return true;
  }
  trouble_ = saved.error().text();
  if (!write_timer_.armed()) {
    write_timer_ = loop_.call_after(options_.write_retry, [this] { retry_writing(); });
  }
  return false;
}

// What gives back goes on; what would be promised is taken back.
void Lender::refuse_unwritten(const std::vector<Command>& commands) {
  const Error error = make_error(ErrorKind::kFailed, trouble_);
  for (const Command& command : commands) {
    if (const auto* prepare = std::get_if<PrepareLease>(&command)) {
      pending_.emplace_back(PreparationFailed{prepare->lease.id, error});
    } else if (const auto* queued = std::get_if<TellQueued>(&command)) {
      tell(queued->id, TellRefused{queued->id, error});
      pending_.emplace_back(HolderLost{queued->id});
    } else if (const auto* renewed = std::get_if<TellRenewed>(&command)) {
      // It holds for as long as this daemon lives, which is more than nothing.
      execute(TellRenewed{renewed->id});
    } else {
      execute(command);
    }
  }
}

void Lender::retry_writing() {
  write_timer_ = {};
  if (!unwritten_.empty()) {
    (void)save({SaveLease{unwritten_.begin()->second}});
  }
}

void Lender::execute(const Command& command) {
  if (const auto* prepare_lease = std::get_if<PrepareLease>(&command)) {
    return prepare(prepare_lease->lease);
  }
  if (const auto* ask = std::get_if<AskToEnd>(&command)) {
    return ask_to_end(*ask);
  }
  if (const auto* kill = std::get_if<KillProcesses>(&command)) {
    ground_.kill(kill->id);
    return try_clear(kill->id);
  }
  if (const auto* pause = std::get_if<PauseProcesses>(&command)) {
    (void)ground_.set_paused(pause->id, os::Frozen::kYes);
  } else if (const auto* resume = std::get_if<ResumeProcesses>(&command)) {
    (void)ground_.set_paused(resume->id, os::Frozen::kNo);
  } else if (const auto* change = std::get_if<ChangeLayout>(&command)) {
    LayoutChangeEnded answer = change_layout_(*change);
    if (answer.outcome == LayoutOutcome::kDone) {
      observe_partitions();
    }
    pending_.emplace_back(std::move(answer));
  } else if (const auto* refused = std::get_if<TellRefused>(&command)) {
    if (refused->id == in_hand_) {
      refusal_ = refused->error;
    }
    tell(refused->id, *refused);
  } else if (const auto* ended = std::get_if<TellEnded>(&command)) {
    settings_.erase(ended->id);
    if (const auto adoption = adoptions_.find(ended->id); adoption != adoptions_.end()) {
      loop_.cancel(adoption->second);
      adoptions_.erase(adoption);
    }
    tell(ended->id, *ended);
  } else if (const auto* granted = std::get_if<TellGranted>(&command)) {
    tell(granted->id, *granted);
  } else if (const auto* queued = std::get_if<TellQueued>(&command)) {
    tell(queued->id, *queued);
  } else if (const auto* warned = std::get_if<WarnHolder>(&command)) {
    tell(warned->id, *warned);
  } else if (const auto* withdrawn = std::get_if<WithdrawWarning>(&command)) {
    tell(withdrawn->id, *withdrawn);
  }
}

void Lender::prepare(const Lease& lease) {
  const Result<LeaseSetting> setting =
      ground_.set_up(lease, held_partitions(lease, ledger_.partitions()));
  if (!setting.ok()) {
    pending_.emplace_back(PreparationFailed{lease.id, setting.error()});
    return;
  }
  settings_[lease.id] = *setting;
  pending_.emplace_back(PreparationSucceeded{lease.id});
}

void Lender::ask_to_end(const AskToEnd& command) {
  tell(command.id, command);
  const auto found = ledger_.leases().find(command.id);
  const bool hook_asks = found != ledger_.leases().end() &&
                         found->second.request.has_checkpoint_hook &&
                         listeners_.contains(command.id);
  if (!hook_asks) {
    ground_.ask_to_end(command.id);
  }
  try_clear(command.id);
}

void Lender::try_clear(LeaseId lease) {
  if (ground_.processes(lease).empty() && ground_.take_down(lease).ok()) {
    pending_.emplace_back(LeaseCleared{lease});
  } else if (!clear_timer_.armed()) {
    clear_timer_ = loop_.call_after(options_.clear_poll, [this] { poll_releasing(); });
  }
}

void Lender::poll_releasing() {
  clear_timer_ = {};
  std::vector<LeaseId> releasing;
  for (const auto& [id, lease] : ledger_.leases()) {
    if (lease.state == LeaseState::kReleasing) {
      releasing.push_back(id);
    }
  }
  for (const LeaseId id : releasing) {
    try_clear(id);
  }
  if (!pending_.empty()) {
    step(TimePassed{});
  }
}

void Lender::tell(LeaseId lease, const LeaseNews& news) {
  const auto [begin, end] = listeners_.equal_range(lease);
  for (auto each = begin; each != end; ++each) {
    each->second->on_news(lease, news);
  }
}

void Lender::arm_deadline() {
  loop_.cancel(deadline_);
  if (const std::optional<Instant> next = ledger_.next_deadline()) {
    deadline_ = loop_.call_at(*next, [this] { step(TimePassed{}); });
  }
}

void Lender::sample() {
  sample_timer_ = loop_.call_after(options_.sample_every, [this] { sample(); });
  std::vector<ActivityObserved> seen;
  for (const auto& [id, lease] : ledger_.leases()) {
    if (lease.runs()) {
      seen.push_back({id, os::now(), ground_.observe(lease)});
    }
  }
  for (const ActivityObserved& each : seen) {
    step(each);
  }
}

void Lender::observe_partitions() {
  loop_.cancel(observe_timer_);
  observe_timer_ = loop_.call_after(options_.observe_every, [this] { observe_partitions(); });
  std::set<std::int64_t> known;
  for (const auto& [id, lease] : ledger_.leases()) {
    for (const int pid : ground_.processes(id)) {
      known.insert(pid);
    }
  }
  Result<PartitionsObserved> partitions = observe_(known);
  // A driver that does not answer is no reason to end leases: the next look may succeed.
  if (partitions.ok() && partitions->partitions != ledger_.partitions()) {
    step(*std::move(partitions));
  }
}

}  // namespace septet::lend
