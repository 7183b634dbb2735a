// The words of septet perf's command line, perf_analyzer's among them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "measure/perf_options.h"
#include "verb.h"

namespace septet::app {

// What is about the output and not about the measurement.
struct PerfOutput {
  std::string csv_file;
  std::string profile_file;
  bool verbose_csv = false;
  int verbose = 0;
};

struct PerfWords {
  measure::PerfArguments arguments;
  PerfOutput output;
  std::uint64_t seed = 1;
  std::uint64_t output_shared_memory_bytes = 102'400;
  unsigned max_threads = 0;
  bool enable_mpi = false;
  bool serial_sequences = false;
  std::map<std::string, std::string> refused;  // options that are not offered, with their values
};

void add_perf_words(CLI::App& verb, PerfWords& words);

// kUsage when a word was given that is known and not offered.
Result<Ok> check_refused_words(const PerfWords& words);

}  // namespace septet::app
