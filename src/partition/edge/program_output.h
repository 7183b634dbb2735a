// Runs a program and returns what it printed; for NVIDIA's command line tools.
//
// Blocking, with a deadline; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace septet::partition {

struct ProgramRun {
  std::vector<std::string> arguments;                              // the program first
  std::vector<std::pair<std::string, std::string>> environment{};  // as os::ProcessOptions
  std::string input{};                                             // for its standard input
  Duration timeout = seconds(10);
};

struct ProgramOutput {
  std::string output;
  std::string errors;
  int exit_code = 0;
};

// kNotFound when there is no such program; kFailed when it does not end in time or is killed.
Result<ProgramOutput> run_program(const ProgramRun& run);

}  // namespace septet::partition
