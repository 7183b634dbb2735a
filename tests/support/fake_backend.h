// FakeBackend: an engine for tests that computes the protocol's example models without a file.
//
// Which arithmetic a model does is its parameter "compute":
//   sum       OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1   (INT32, or decimal strings)
//   copy      every output is the input of the same position, whatever its type
//   fail      every run fails
//   hold      copy, but runs wait until release() is called
//   zeros     outputs of the configured shape; free dimensions are 1
//   told      the request's parameters, "name=value" each     (BYTES)
//   total     every output is INPUT + STATE                                    (INT32)
//   sequence  OUTPUT = INPUT + START, plus CORRID where END is set    (INT32)
// Runs are recorded. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "serve/backend.h"

namespace septet::test_support {

class FakeBackend : public serve::Backend {
 public:
  std::string_view name() const override { return "fake"; }
  Result<std::unique_ptr<serve::BackendModel>> load(const serve::LoadArguments& arguments) override;

  // The batch sizes of all runs so far.
  std::vector<int> batches() const;
  // Lets held runs go, now and from now on.
  void release();
  void hold();
  // Until this many runs are being held.
  void await_held(int count);

  // For the instances.
  void record(int batch_size);
  void wait_if_held();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> batches_;
  bool released_ = false;
  int held_ = 0;
};

}  // namespace septet::test_support
