// Transaction: brings one GPU from its layout to another, or back; never to anything between.
//
//             intent written          nothing left to do
//   kStart ---------------> kForward --------------------> kDone(applied)
//                              |  a step fails, or succeeds without effect
//                              v
//                            kBack ----------------------> kDone(rolled back)
//                              |  three times without progress
//                              v
//                            kDone(unclear): says what stands where; the journal stays
//
// A pure state machine: next_command() says what to do, one thing at a time; the answer comes in as
// an event. After every driver call it asks to observe, and judges only by what it observed: an
// error whose effect took place goes on, a success without effect is a failure. A new process makes
// a Transaction from the journal (recover()) and ends in the new layout when nothing needs to be
// destroyed any more, else in the old one. Owned by one caller, one thread.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/change_steps.h"
#include "partition/layout.h"

namespace septet::partition {

// What must outlive a crash.
struct Intent {
  gpu::GpuUuid gpu;
  Layout before;
  Layout after;
  // MIG UUIDs of the old layout, in the order of its instances and their compute instances.
  std::vector<std::pair<std::string, gpu::MigUuid>> old_uuids;  // "3g.20gb@4/0" -> UUID
  bool operator==(const Intent&) const = default;
};

enum class Direction { kForward, kBack };

// Commands.
struct WriteIntent {
  Intent intent;
};
struct WriteStep {  // before the step is taken
  Direction direction = Direction::kForward;
  ChangeStep step;
};
struct Observe {};
struct TakeStep {
  ChangeStep step;
};
struct ForgetJournal {
  std::optional<Layout> desired;  // the layout to restore at boot from now on; nothing: as before
};
struct Finish {};
using TransactionCommand =
    std::variant<WriteIntent, WriteStep, Observe, TakeStep, ForgetJournal, Finish>;

// Events: the answer to the last command.
struct Written {};
struct Observed {
  gpu::GpuState state;
};
struct StepTaken {};
struct Failed {
  Error error;
};
using TransactionEvent = std::variant<Written, Observed, StepTaken, Failed>;

enum class TransactionOutcome {
  kUnchanged,    // the layout was there already
  kApplied,      // the new layout, read back
  kRolledBack,   // the old layout, read back
  kUnclear,      // neither; the journal stays for the next try
  kResetNeeded,  // the mode waits for a reset or a reboot; the layout is kept for `restore`
};

class Transaction {
 public:
  // A new one: from what was observed to the wanted layout.
  Transaction(const gpu::GpuState& observed, Layout wanted);
  // One that a dead process left.
  static Transaction recover(Intent intent);

  TransactionCommand next_command() const;
  void step(const TransactionEvent& event);

  bool finished() const { return phase_ == Phase::kFinished; }
  TransactionOutcome outcome() const { return outcome_; }
  // Why it did not end in the new layout; nothing when it did.
  const std::optional<Error>& cause() const { return cause_; }
  const gpu::GpuState& last_observed() const { return observed_; }
  const Intent& intent() const { return intent_; }
  std::size_t steps_taken() const { return steps_taken_; }

 private:
  enum class Phase {
    kWriteIntent,
    kObserve,
    kWriteStep,
    kTakeStep,
    kForget,
    kFinished,
  };

  Transaction() = default;
  void on_observed(gpu::GpuState state);
  void on_failed(const Error& error);
  void judge(std::size_t left);
  void choose_direction_after_crash();
  void turn_back(Error cause);
  void lack_of_progress(Error cause);
  void end(TransactionOutcome outcome);
  const Layout& goal() const;
  StepList steps_left() const;

  Phase phase_ = Phase::kWriteIntent;
  Direction direction_ = Direction::kForward;
  TransactionOutcome outcome_ = TransactionOutcome::kUnclear;
  Intent intent_;
  gpu::GpuState observed_;
  std::optional<Error> cause_;
  std::optional<Error> step_error_;      // of the step just taken
  std::optional<std::size_t> expected_;  // steps left before the step just taken
  std::optional<ChangeStep> current_;
  unsigned stalls_ = 0;
  bool recovering_ = false;
  bool turned_ = false;
  std::size_t steps_taken_ = 0;
};

// The goals as one set of places: whatever stands at one of them is the transaction's own.
Layout places_of_both(const Layout& before, const Layout& after);

// Old MIG UUIDs by place: "3g.20gb@4/0" (the number is the compute instance's start slice).
std::vector<std::pair<std::string, gpu::MigUuid>> uuids_by_place(const gpu::GpuState& state);

}  // namespace septet::partition
