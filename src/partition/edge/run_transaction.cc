#include "partition/edge/run_transaction.h"

#include <fmt/format.h>

namespace septet::partition {
namespace {

TransactionEvent answer(const Result<Ok>& result) {
  return result.ok() ? TransactionEvent(Written{}) : TransactionEvent(Failed{result.error()});
}

template <typename T>
Result<Ok> without_value(const Result<T>& result) {
  SEPTET_TRY(result);
  return Ok{};
}

// The plain compute instance profile of this many slices; ids move with the driver, so ask.
Result<gpu::ProfileId> compute_profile(gpu::GpuDriver& driver, unsigned index,
                                       const CreateCompute& step) {
  auto profiles = driver.compute_profiles(index, step.instance);
  SEPTET_TRY(profiles);
  const gpu::ComputeInstanceProfile* best = nullptr;
  for (const gpu::ComputeInstanceProfile& profile : *profiles) {
    // A variant (Hopper's second 1c) comes with a higher enum than the plain one.
    if (profile.slices == step.slices && (best == nullptr || profile.nvml_enum < best->nvml_enum)) {
      best = &profile;
    }
  }
  if (best == nullptr) {
    return make_error(
        ErrorKind::kNotFound,
        fmt::format("{} offers no compute instance of {} slices", step.name, step.slices));
  }
  return best->id;
}

// One driver call per step.
struct StepTaker {
  gpu::GpuDriver& driver;
  unsigned index;

  Result<Ok> operator()(const SetMode& step) const { return driver.set_mig_mode(index, step.mode); }
  Result<Ok> operator()(const DestroyCompute& step) const {
    return driver.destroy_compute_instance(index, step.instance, step.compute);
  }
  Result<Ok> operator()(const DestroyInstance& step) const {
    return driver.destroy_gpu_instance(index, step.instance);
  }
  Result<Ok> operator()(const CreateInstance& step) const {
    return without_value(driver.create_gpu_instance(index, step.profile, step.placement));
  }
  Result<Ok> operator()(const CreateCompute& step) const {
    auto profile = compute_profile(driver, index, step);
    SEPTET_TRY(profile);
    return without_value(driver.create_compute_instance(index, step.instance, *profile));
  }
};

struct CommandRunner {
  const Transaction& transaction;
  unsigned index;
  gpu::GpuDriver& driver;
  Journal& journal;

  TransactionEvent operator()(const WriteIntent& command) const {
    return answer(journal.write_intent(command.intent));
  }
  TransactionEvent operator()(const WriteStep& command) const {
    return answer(journal.write_step(command.direction, command.step));
  }
  TransactionEvent operator()(const Observe&) const {
    auto state = driver.observe(index);
    return state.ok() ? TransactionEvent(Observed{*std::move(state)})
                      : TransactionEvent(Failed{state.error()});
  }
  TransactionEvent operator()(const TakeStep& command) const {
    const auto taken = std::visit(StepTaker{driver, index}, command.step);
    return taken.ok() ? TransactionEvent(StepTaken{}) : TransactionEvent(Failed{taken.error()});
  }
  TransactionEvent operator()(const ForgetJournal& command) const {
    std::optional<StoredLayout> desired;
    if (command.desired) {
      desired = StoredLayout{transaction.intent().gpu, transaction.last_observed().name,
                             *command.desired};
    }
    return answer(journal.forget(desired));
  }
  TransactionEvent operator()(const Finish&) const { return Written{}; }
};

}  // namespace

Result<Ok> JournalFile::write_intent(const Intent& intent) {
  const std::string path = state_.journal_path(gpu_);
  SEPTET_TRY(os::replace_file(path, write_intent_line(intent)));
  auto file = os::AppendFile::open(path);
  SEPTET_TRY(file);
  file_ = *std::move(file);
  return Ok{};
}

Result<Ok> JournalFile::write_step(Direction direction, const ChangeStep& step) {
  if (!file_) {  // a recovered transaction goes on in the journal it came from
    auto file = os::AppendFile::open(state_.journal_path(gpu_));
    SEPTET_TRY(file);
    file_ = *std::move(file);
  }
  // Not forced to the disk: a killed process loses nothing of it, and a machine that crashes loses
  // every instance, so that its recovery needs the intent alone.
  return file_->append_unsynced(write_step_line(direction, step));
}

Result<Ok> JournalFile::forget(const std::optional<StoredLayout>& desired) {
  file_.reset();
  if (desired) {
    SEPTET_TRY(os::replace_file(state_.desired_path(gpu_), write_stored_layout(*desired)));
  }
  return os::remove_file(state_.journal_path(gpu_));
}

void run_transaction(Transaction& transaction, unsigned index, gpu::GpuDriver& driver,
                     Journal& journal) {
  const CommandRunner runner{transaction, index, driver, journal};
  while (!transaction.finished()) {
    transaction.step(std::visit(runner, transaction.next_command()));
  }
}

}  // namespace septet::partition
