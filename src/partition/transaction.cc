#include "partition/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace septet::partition {
namespace {

// How often a step back, or reading the GPU, is tried without progress before giving up.
constexpr unsigned kMostStalls = 3;

Error no_effect(const ChangeStep& step) {
  return make_error(ErrorKind::kVerification,
                    fmt::format("tried to {}: the driver reported success, but reading back shows "
                                "no such change",
                                to_string(step)),
                    "see septet doctor");
}

Error with_step(const Error& error, const ChangeStep& step) {
  return make_error(error.kind, fmt::format("cannot {}: {}", to_string(step), error.message),
                    error.hint);
}

}  // namespace

Transaction::Transaction(const gpu::GpuState& observed, Layout wanted) : observed_(observed) {
  intent_.gpu = observed.uuid;
  intent_.before = layout_of(observed);
  intent_.after = std::move(wanted);
  intent_.old_uuids = uuids_by_place(observed);
  if (steps_left().size() == 0) {
    end(TransactionOutcome::kUnchanged);
  }
}

Transaction Transaction::recover(Intent intent) {
  Transaction transaction;
  transaction.intent_ = std::move(intent);
  transaction.phase_ = Phase::kObserve;
  transaction.recovering_ = true;
  return transaction;
}

const Layout& Transaction::goal() const {
  return direction_ == Direction::kForward ? intent_.after : intent_.before;
}

StepList Transaction::steps_left() const {
  return steps_to(observed_, goal(), places_of_both(intent_.before, intent_.after));
}

TransactionCommand Transaction::next_command() const {
  switch (phase_) {
    case Phase::kWriteIntent:
      return WriteIntent{intent_};
    case Phase::kObserve:
      return Observe{};
    case Phase::kWriteStep:
      return WriteStep{direction_, current_.value()};
    case Phase::kTakeStep:
      return TakeStep{current_.value()};
    case Phase::kForget: {
      const bool forward = outcome_ != TransactionOutcome::kRolledBack;
      return ForgetJournal{forward ? std::optional(intent_.after) : std::nullopt};
    }
    case Phase::kFinished:
      return Finish{};
  }
  return Finish{};
}

void Transaction::step(const TransactionEvent& event) {
  CHECK(!finished());
  if (const auto* failed = std::get_if<Failed>(&event)) {
    on_failed(failed->error);
    return;
  }
  switch (phase_) {
    case Phase::kWriteIntent:
      judge(steps_left().size());
      break;
    case Phase::kObserve:
      on_observed(std::get<Observed>(event).state);
      break;
    case Phase::kWriteStep:
      phase_ = Phase::kTakeStep;
      break;
    case Phase::kTakeStep:
      ++steps_taken_;
      step_error_.reset();
      phase_ = Phase::kObserve;
      break;
    case Phase::kForget:
      phase_ = Phase::kFinished;
      break;
    case Phase::kFinished:
      break;
  }
}

void Transaction::on_failed(const Error& error) {
  switch (phase_) {
    case Phase::kWriteIntent:
      cause_ = error;  // nothing was touched
      outcome_ = TransactionOutcome::kRolledBack;
      phase_ = Phase::kFinished;
      break;
    case Phase::kObserve:
      if (!cause_) {
        cause_ = error;
      }
      if (++stalls_ >= kMostStalls) {
        end(TransactionOutcome::kUnclear);
      }
      break;
    case Phase::kWriteStep:
      if (direction_ == Direction::kForward) {
        turn_back(error);
      } else {
        phase_ = Phase::kTakeStep;  // the old layout matters more than the record of the way back
      }
      break;
    case Phase::kTakeStep:
      ++steps_taken_;
      step_error_ = with_step(error, current_.value());
      phase_ = Phase::kObserve;
      break;
    case Phase::kForget:
      if (!cause_) {
        cause_ = error;
      }
      phase_ = Phase::kFinished;
      break;
    case Phase::kFinished:
      break;
  }
}

void Transaction::on_observed(gpu::GpuState state) {
  observed_ = std::move(state);
  if (recovering_ && !current_) {
    choose_direction_after_crash();
  }
  const std::size_t left = steps_left().size();
  if (!expected_ || left < *expected_) {
    stalls_ = 0;
    judge(left);
    return;
  }
  const bool mode_waits = std::holds_alternative<SetMode>(*current_) &&
                          observed_.mig_pending == goal().mode &&
                          observed_.mig_current != goal().mode;
  const bool held = step_error_ && step_error_->kind == ErrorKind::kPrecondition;
  if (mode_waits && !held) {
    cause_ =
        make_error(ErrorKind::kResetNeeded,
                   fmt::format("MIG mode of GPU {} ({}) is accepted, but waits for a reset",
                               observed_.index, observed_.name),
                   "reset the GPU (nvidia-smi --gpu-reset) or reboot, then run septet restore");
    end(TransactionOutcome::kResetNeeded);
    return;
  }
  lack_of_progress(step_error_ ? *step_error_ : no_effect(*current_));
}

// Takes the next step, or ends when there is none.
void Transaction::judge(std::size_t left) {
  const StepList list = steps_left();
  CHECK(list.size() == left);
  if (!list.steps.empty()) {
    current_ = list.steps.front();
    expected_ = left;
    phase_ = Phase::kWriteStep;
    return;
  }
  if (!list.foreign.empty()) {
    cause_ = make_error(ErrorKind::kVerification,
                        fmt::format("GPU {} ({}) also has {}, which another program made meanwhile",
                                    observed_.index, observed_.name, join_words(list.foreign)),
                        "see septet status");
  }
  end(direction_ == Direction::kForward ? TransactionOutcome::kApplied
                                        : TransactionOutcome::kRolledBack);
}

void Transaction::choose_direction_after_crash() {
  const Layout ours = places_of_both(intent_.before, intent_.after);
  const StepList forward = steps_to(observed_, intent_.after, ours);
  const StepList back = steps_to(observed_, intent_.before, ours);
  const bool back_is_done = back.size() == 0 && forward.size() != 0;
  direction_ = back_is_done || destroys_anything(forward) ? Direction::kBack : Direction::kForward;
  if (direction_ == Direction::kBack && !cause_) {
    cause_ = make_error(ErrorKind::kFailed, "a change of the layout was interrupted",
                        "the old layout is in place; repeat the command to change it");
  }
}

void Transaction::turn_back(Error cause) {
  cause_ = std::move(cause);
  direction_ = Direction::kBack;
  turned_ = true;
  stalls_ = 0;
  expected_.reset();
  phase_ = Phase::kObserve;
}

void Transaction::lack_of_progress(Error cause) {
  if (direction_ == Direction::kForward && !turned_) {
    turn_back(std::move(cause));
    return;
  }
  if (++stalls_ < kMostStalls) {
    judge(steps_left().size());
    return;
  }
  if (direction_ == Direction::kBack && recovering_ && !turned_) {
    turned_ = true;
    direction_ = Direction::kForward;
    stalls_ = 0;
    expected_.reset();
    judge(steps_left().size());
    return;
  }
  if (cause_ && cause_->message != cause.message) {
    cause.message = fmt::format("{}; on the way back: {}", cause_->message, cause.message);
  }
  cause_ = std::move(cause);
  end(TransactionOutcome::kUnclear);
}

void Transaction::end(TransactionOutcome outcome) {
  outcome_ = outcome;
  phase_ = outcome == TransactionOutcome::kUnclear ? Phase::kFinished : Phase::kForget;
  if (outcome == TransactionOutcome::kApplied && cause_ &&
      cause_->kind != ErrorKind::kVerification) {
    cause_.reset();  // what failed on the way does not matter any more
  }
}

Layout places_of_both(const Layout& before, const Layout& after) {
  Layout both = before;
  for (const LayoutInstance& instance : after.instances) {
    const bool known = std::any_of(both.instances.begin(), both.instances.end(),
                                   [&](const auto& other) { return other.same_place(instance); });
    if (!known) {
      both.instances.push_back(instance);
    }
  }
  return both;
}

std::vector<std::pair<std::string, gpu::MigUuid>> uuids_by_place(const gpu::GpuState& state) {
  std::vector<std::pair<std::string, gpu::MigUuid>> result;
  const Layout layout = layout_of(state);
  for (const LayoutInstance& entry : layout.instances) {
    for (const gpu::GpuInstance& instance : state.instances) {
      if (instance.placement != entry.placement || instance.profile_id != entry.profile_id) {
        continue;
      }
      for (const gpu::ComputeInstance& compute : instance.compute_instances) {
        result.emplace_back(
            fmt::format("{}@{}/{}", entry.profile, entry.placement.start, compute.placement.start),
            compute.uuid);
      }
    }
  }
  return result;
}

}  // namespace septet::partition
