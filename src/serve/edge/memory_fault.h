// MemoryFault: makes this process outgrow its memory on demand, for isolation experiments.
//
// From SIGUSR2 on it allocates and touches memory without end, at the given rate, until the process
// is ended for it. Owned by a verb and made before any other thread, because it blocks that signal.
#pragma once

#include <atomic>
#include <thread>

namespace septet::serve {

class MemoryFault {
 public:
  explicit MemoryFault(int mib_per_second);
  // Memory that was allocated stays until the process ends.
  ~MemoryFault();
  MemoryFault(const MemoryFault&) = delete;
  MemoryFault& operator=(const MemoryFault&) = delete;

 private:
  void run();
  void allocate_chunk();

  int mib_per_second_;
  std::atomic<bool> leaving_ = false;
  std::thread thread_;
};

}  // namespace septet::serve
