#include "serve/edge/server_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "os/clock.h"

namespace septet::serve {

void ServerLog::write(std::string_view text) {
  std::string line;
  if (iso8601) {
    const std::int64_t now = os::unix_time_ns();
    line = fmt::format("{:%Y-%m-%dT%H:%M:%S}Z ",
                       fmt::gmtime(static_cast<std::time_t>(now / 1'000'000'000)));
  }
  line += fmt::format("septet: {}\n", text);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void ServerLog::info(std::string_view text) {
  if (info_on) {
    write(text);
  }
}

void ServerLog::warning(std::string_view text) {
  if (warning_on) {
    write(text);
  }
}

void ServerLog::error(std::string_view text) {
  if (error_on) {
    write(text);
  }
}

void ServerLog::verbose(std::string_view text) {
  if (verbose_level >= 1) {
    write(text);
  }
}

}  // namespace septet::serve
