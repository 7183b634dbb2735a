// What machine this is: for results, which are worth nothing without it, and for shares of it.
#pragma once

#include <cstdint>
#include <string>

namespace septet::os {

struct Machine {
  int cpus = 1;                   // that this process may run on
  std::int64_t memory_bytes = 0;  // of the machine, or of the container if that is less
  std::string cpu_name;           // "Intel(R) Xeon(R) CPU @ 2.80GHz"; empty if unknown

  // "2 x Intel(R) Xeon(R) CPU @ 2.80GHz, 24 GiB".
  std::string text() const;
};

// Reads it now.
Machine this_machine();

}  // namespace septet::os
