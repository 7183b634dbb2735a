#include "compare_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/units.h"
#include "measure/experiment.h"

namespace septet::app {

CompareProgress::CompareProgress() : terminal_(isatty(STDERR_FILENO) == 1) {}

CompareProgress::~CompareProgress() {
  if (open_) {
    fmt::print(stderr, "\r\033[K");
  }
}

void CompareProgress::tell(const agent::ExperimentProgress& progress) {
  const std::string configuration =
      measure::configuration_name({.technique = agent::to_string(progress.configuration.sharing),
                                   .profile = progress.configuration.profile,
                                   .replicas = progress.configuration.replicas});
  if (progress.error != nullptr) {
    say(fmt::format("septet: {} is passed over: {}", configuration, progress.error->text()));
    return;
  }
  const std::string left =
      fmt::format("about {} left", format_duration(seconds(progress.left / seconds(1))));
  const std::string position = fmt::format("[{:>2}/{}]", progress.cells_done, progress.cells);
  if (progress.row == nullptr) {
    show(fmt::format("{} {}: laying out the GPU, starting replicas; {}", position, configuration,
                     left));
    return;
  }
  const measure::ResultRow& row = *progress.row;
  std::string line =
      fmt::format("{} {}, concurrency {}: {:.1f} infer/sec, p90 {}", position, configuration,
                  row.concurrency, row.throughput, measure::latency_text(row.p90_us));
  if (row.errors > 0) {
    line += fmt::format(", {} failed", row.errors);
  }
  show(line + "; " + left);
}

void CompareProgress::say(const std::string& line) {
  fmt::print(stderr, "{}{}\n", open_ ? "\r\033[K" : "", line);
  open_ = false;
}

void CompareProgress::show(const std::string& line) {
  if (!terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  open_ = true;
}

}  // namespace septet::app
