// Interrupt: turns Ctrl-C and a request to end into a flag that long work looks at.
//
// Owned by a verb and made before the first thread. The first SIGINT, SIGTERM or SIGHUP sets the
// flag; another one ends the process at once, as if this were not here.
#pragma once

#include <signal.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::os {

class Interrupt {
 public:
  static Result<std::unique_ptr<Interrupt>> start();
  // The signals act as they did before.
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& requested() const { return requested_; }

 private:
  Interrupt(UniqueFd signals, UniqueFd leave, const sigset_t& before);
  void watch();

  UniqueFd signals_;  // signalfd
  UniqueFd leave_;    // eventfd: the end of this object
  sigset_t before_;
  std::atomic<bool> requested_ = false;
  std::thread thread_;  // last: uses what is above
};

}  // namespace septet::os
