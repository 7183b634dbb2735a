// Client: one connection of a client, whatever protocol it speaks.
//
// Owned by the Reactor, used by its thread.
#pragma once

#include "base/time.h"

namespace septet::balance {

class Client {
 public:
  virtual ~Client() = default;
  // Closes it if it has kept us waiting too long.
  virtual void check_time(Instant now) = 0;
  // Memory for a body may be had again.
  virtual void memory_freed() = 0;
};

}  // namespace septet::balance
