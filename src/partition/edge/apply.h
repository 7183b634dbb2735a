// Lays out a GPU: lock, recover what was interrupted, plan, transact, read back.
//
// What `septet apply`, `reset`, `restore` and `compare` call. One GPU per call; several processes
// may call at once, the lock lets one through.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "gpu/gpu_driver.h"
#include "partition/edge/state_folder.h"
#include "partition/gpu_plan.h"
#include "partition/transaction.h"

namespace septet::partition {

struct ApplyOptions {
  StateFolder state;
  PlanOptions plan{};
  // How long septet's own processes may take to leave what must go; nothing = they are not asked.
  std::optional<Duration> drain{};
};

// What became of one MIG device.
struct UuidChange {
  std::string place;    // "3g.20gb@4/0": profile, start, start slice of the compute instance
  gpu::MigUuid before;  // empty: it is new
  gpu::MigUuid after;   // empty: it is gone
};

struct ApplyReport {
  unsigned index = 0;
  std::string gpu_name;
  gpu::GpuUuid gpu;
  std::optional<GpuPlan> plan;  // nothing when only an interrupted change was ended
  TransactionOutcome outcome = TransactionOutcome::kUnchanged;
  std::optional<Error> error;      // why it is not the wanted layout
  std::vector<UuidChange> uuids;   // by place
  std::vector<std::string> notes;  // also: an interrupted change was ended
  gpu::GpuState state;             // read back
  std::size_t driver_calls = 0;    // calls that changed something or tried to
};

// The wanted layout on this GPU. Errors before anything was touched come as the Result's error,
// errors afterwards in the report, with the layout that is there.
Result<ApplyReport> apply_want(gpu::GpuDriver& driver, unsigned index, const Want& want,
                               const ApplyOptions& options);
// Exactly this layout; mode disabled: all instances go, then MIG mode is switched off.
Result<ApplyReport> apply_layout(gpu::GpuDriver& driver, unsigned index, const Layout& layout,
                                 const ApplyOptions& options);
// Ends an interrupted change, then re-creates the desired layout. kNotFound when there is neither.
Result<ApplyReport> restore_gpu(gpu::GpuDriver& driver, unsigned index,
                                const ApplyOptions& options);
// Ends an interrupted change; nothing when there was none.
Result<std::optional<ApplyReport>> recover_gpu(gpu::GpuDriver& driver, unsigned index,
                                               const StateFolder& state);

// The exit code's error of a report: none, or what the command failed with.
std::optional<Error> error_of(const ApplyReport& report);

}  // namespace septet::partition
