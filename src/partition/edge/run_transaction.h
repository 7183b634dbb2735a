// Carries out a Transaction: its commands on a driver, its records in a journal.
//
// The journal is an interface, so that tests can end the process's life between any two calls.
// One caller, one thread, under the GPU's lock.
#pragma once

#include <memory>

#include "base/result.h"
#include "gpu/gpu_driver.h"
#include "os/durable_file.h"
#include "partition/edge/state_folder.h"
#include "partition/transaction.h"

namespace septet::partition {

class Journal {
 public:
  virtual ~Journal() = default;
  // On the disk when it returns.
  virtual Result<Ok> write_intent(const Intent& intent) = 0;
  // Safe from the end of this process when it returns.
  virtual Result<Ok> write_step(Direction direction, const ChangeStep& step) = 0;
  // The change is over: first the layout to restore from now on, then the journal goes.
  virtual Result<Ok> forget(const std::optional<StoredLayout>& desired) = 0;
};

// The journal in a state folder. The GPU's folder exists (GpuLock::take made it).
class JournalFile : public Journal {
 public:
  JournalFile(const StateFolder& state, gpu::GpuUuid gpu) : state_(state), gpu_(std::move(gpu)) {}

  Result<Ok> write_intent(const Intent& intent) override;
  Result<Ok> write_step(Direction direction, const ChangeStep& step) override;
  Result<Ok> forget(const std::optional<StoredLayout>& desired) override;

 private:
  StateFolder state_;
  gpu::GpuUuid gpu_;
  std::optional<os::AppendFile> file_;
};

// Runs it to its end on the GPU with this index.
void run_transaction(Transaction& transaction, unsigned index, gpu::GpuDriver& driver,
                     Journal& journal);

}  // namespace septet::partition
