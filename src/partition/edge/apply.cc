#include "partition/edge/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "partition/edge/holders.h"
#include "partition/edge/preflight.h"
#include "partition/edge/run_transaction.h"

namespace septet::partition {
namespace {

std::string gpu_text(const gpu::GpuState& state) {
  return fmt::format("GPU {} ({})", state.index, state.name);
}

std::vector<UuidChange> uuid_changes(const Intent& intent, const gpu::GpuState& now) {
  std::vector<UuidChange> changes;
  for (const auto& [place, uuid] : intent.old_uuids) {
    changes.push_back({place, uuid, {}});
  }
  for (const auto& [place, uuid] : uuids_by_place(now)) {
    const auto known = std::find_if(changes.begin(), changes.end(),
                                    [&, &here = place](const auto& c) { return c.place == here; });
    if (known == changes.end()) {
      changes.push_back({place, {}, uuid});
    } else {
      known->after = uuid;
    }
  }
  return changes;
}

ApplyReport report_of(const Transaction& transaction, const gpu::GpuState& state) {
  ApplyReport report;
  report.index = state.index;
  report.gpu_name = state.name;
  report.gpu = state.uuid;
  report.outcome = transaction.outcome();
  report.error = transaction.cause();
  report.state = transaction.last_observed();
  report.uuids = uuid_changes(transaction.intent(), report.state);
  report.driver_calls = transaction.steps_taken();
  return report;
}

HolderPolicy holder_policy(gpu::GpuDriver& driver, const ApplyOptions& options) {
  const auto info = driver.info();
  return {info.ok() && info->simulated, standard_root(), options.drain};
}

// Under the lock: ends what was interrupted and says so.
Result<std::optional<ApplyReport>> recover_locked(gpu::GpuDriver& driver, unsigned index,
                                                  const StateFolder& state,
                                                  const gpu::GpuUuid& gpu) {
  auto intent = state.read_intent(gpu);
  SEPTET_TRY(intent);
  if (!*intent) {
    return std::optional<ApplyReport>();
  }
  Transaction transaction = Transaction::recover(**intent);
  JournalFile journal(state, gpu);
  run_transaction(transaction, index, driver, journal);
  gpu::GpuState known = transaction.last_observed();
  known.index = index;
  known.uuid = gpu;
  ApplyReport report = report_of(transaction, known);
  report.notes.push_back(fmt::format(
      "a change that was interrupted is ended: GPU {} has {}", index,
      report.outcome == TransactionOutcome::kUnclear      ? "neither the old nor the new layout"
      : report.outcome == TransactionOutcome::kRolledBack ? "its old layout"
                                                          : "its new layout"));
  return std::optional(std::move(report));
}

// Everything between the lock and the report; `make` plans from what is observed under the lock.
using MakePlan = std::function<Result<GpuPlan>(const gpu::GpuState&)>;

struct Locked {
  GpuLock lock;
  gpu::GpuState state;
  std::vector<std::string> notes;
};

Result<Locked> lock_gpu(gpu::GpuDriver& driver, unsigned index, const StateFolder& state) {
  auto observed = driver.observe(index);
  SEPTET_TRY(observed);
  auto lock = GpuLock::take(state, observed->uuid);
  SEPTET_TRY(lock);
  auto recovered = recover_locked(driver, index, state, observed->uuid);
  SEPTET_TRY(recovered);
  std::vector<std::string> notes;
  if (*recovered) {
    notes = (*recovered)->notes;
    if ((*recovered)->outcome == TransactionOutcome::kUnclear) {
      return (*recovered)->error.value_or(make_error(ErrorKind::kFailed, notes.front()));
    }
  }
  auto now = driver.observe(index);
  SEPTET_TRY(now);
  return Locked{*std::move(lock), *std::move(now), std::move(notes)};
}

ApplyReport transact(gpu::GpuDriver& driver, const Locked& locked, const StateFolder& state,
                     const Layout& wanted) {
  Transaction transaction(locked.state, wanted);
  JournalFile journal(state, locked.state.uuid);
  run_transaction(transaction, locked.state.index, driver, journal);
  ApplyReport report = report_of(transaction, locked.state);
  report.notes = locked.notes;
  return report;
}

// Plans under the lock; lets ours leave what must go and plans again with what is there then.
Result<GpuPlan> plan_and_drain(gpu::GpuDriver& driver, Locked& locked, const HolderPolicy& policy,
                               const MakePlan& make) {
  auto plan = make(locked.state);
  SEPTET_TRY(plan);
  auto drained = drain_for(locked.state, *plan, policy);
  SEPTET_TRY(drained);
  if (!*drained) {
    return plan;
  }
  auto now = driver.observe(locked.state.index);
  SEPTET_TRY(now);
  locked.state = *std::move(now);
  return make(locked.state);
}

Result<ApplyReport> apply_plan(gpu::GpuDriver& driver, unsigned index, const ApplyOptions& options,
                               const MakePlan& make) {
  auto locked = lock_gpu(driver, index, options.state);
  SEPTET_TRY(locked);
  const HolderPolicy policy = holder_policy(driver, options);
  SEPTET_TRY(check_mode(locked->state, gpu::MigMode::kEnabled, policy));
  auto plan = plan_and_drain(driver, *locked, policy, make);
  if (!plan.ok()) {
    return with_holders(plan.error(), locked->state, policy);
  }
  ApplyReport report = transact(driver, *locked, options.state, plan->after);
  if (report.error) {
    report.error = with_holders(*std::move(report.error), report.state, policy);
  }
  report.notes.insert(report.notes.end(), plan->notes.begin(), plan->notes.end());
  report.plan = *std::move(plan);
  return report;
}

}  // namespace

Result<ApplyReport> apply_want(gpu::GpuDriver& driver, unsigned index, const Want& want,
                               const ApplyOptions& options) {
  return apply_plan(driver, index, options, [&](const gpu::GpuState& state) {
    return plan_gpu(state, want, options.plan);
  });
}

Result<ApplyReport> apply_layout(gpu::GpuDriver& driver, unsigned index, const Layout& layout,
                                 const ApplyOptions& options) {
  if (layout.mode == gpu::MigMode::kEnabled) {
    return apply_plan(driver, index, options, [&](const gpu::GpuState& state) {
      return plan_layout(state, layout, options.plan);
    });
  }
  auto locked = lock_gpu(driver, index, options.state);
  SEPTET_TRY(locked);
  const HolderPolicy policy = holder_policy(driver, options);
  if (!locked->state.instances.empty()) {
    // Also a GPU that shall have nothing is planned: what is busy stays and is named.
    auto plan = plan_and_drain(driver, *locked, policy, [&](const gpu::GpuState& state) {
      return plan_layout(state, {}, options.plan);
    });
    if (!plan.ok()) {
      return with_holders(plan.error(), locked->state, policy);
    }
  }
  SEPTET_TRY(check_mode(locked->state, gpu::MigMode::kDisabled, policy));
  return transact(driver, *locked, options.state, layout);
}

Result<ApplyReport> restore_gpu(gpu::GpuDriver& driver, unsigned index,
                                const ApplyOptions& options) {
  auto observed = driver.observe(index);
  SEPTET_TRY(observed);
  auto recovered = recover_gpu(driver, index, options.state);
  SEPTET_TRY(recovered);
  if (*recovered && error_of(**recovered) &&
      (*recovered)->outcome == TransactionOutcome::kUnclear) {
    return **std::move(recovered);
  }
  auto desired = options.state.read_desired(observed->uuid);
  SEPTET_TRY(desired);
  if (!*desired) {
    if (*recovered) {
      return **std::move(recovered);
    }
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no layout is kept for {}", gpu_text(*observed)),
                      "septet apply keeps one");
  }
  auto report = apply_layout(driver, index, (*desired)->layout, options);
  if (report.ok() && *recovered) {
    report->notes.insert(report->notes.begin(), (*recovered)->notes.begin(),
                         (*recovered)->notes.end());
  }
  return report;
}

Result<std::optional<ApplyReport>> recover_gpu(gpu::GpuDriver& driver, unsigned index,
                                               const StateFolder& state) {
  auto observed = driver.observe(index);
  SEPTET_TRY(observed);
  auto lock = GpuLock::take(state, observed->uuid);
  SEPTET_TRY(lock);
  return recover_locked(driver, index, state, observed->uuid);
}

std::optional<Error> error_of(const ApplyReport& report) {
  if (report.outcome == TransactionOutcome::kUnclear && report.error) {
    Error error = *report.error;
    error.kind = ErrorKind::kVerification;
    error.message = fmt::format("GPU {} ({}) has neither the old nor the new layout: {}",
                                report.index, report.gpu_name, error.message);
    error.hint = "septet restore tries again";
    return error;
  }
  if (report.outcome == TransactionOutcome::kRolledBack && report.error) {
    Error error = *report.error;
    error.message = fmt::format("{}; GPU {} ({}) has its old layout", error.message, report.index,
                                report.gpu_name);
    return error;
  }
  return report.error;
}

}  // namespace septet::partition
