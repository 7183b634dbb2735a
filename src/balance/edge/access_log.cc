#include "balance/edge/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "balance/forwarded_head.h"

namespace septet::balance {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;

void append_text(std::string& line, std::string_view name, std::string_view text) {
  line.append(",\"").append(name).append("\":");
  append_json_string(line, text);
}

}  // namespace

Result<Ok> AccessLog::open(const std::string& path, std::uint64_t every) {
  every_ = every == 0 ? 1 : every;
  if (path == "-") {
    fd_ = STDERR_FILENO;
    return Ok{};
  }
  file_ = os::UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (!file_.valid()) {
    return make_error(
        ErrorKind::kFailed,
        fmt::format("cannot open the access log '{}': {}", path, std::strerror(errno)),
        "name a file that may be written, or - for standard error");
  }
  fd_ = file_.get();
  return Ok{};
}

void AccessLog::add(const Entry& entry) {
  if (lines_.size() >= kMostBytes) {
    ++lost_;
    return;
  }
  timeval now{};
  gettimeofday(&now, nullptr);
  fmt::format_to(std::back_inserter(lines_), "{{\"time\":{}.{:06}", now.tv_sec, now.tv_usec);
  append_text(lines_, "protocol", entry.protocol);
  lines_ += ",\"target\":";
  append_json_string(lines_, entry.method.empty()
                                 ? std::string(entry.target)
                                 : fmt::format("{} {}", entry.method, entry.target));
  fmt::format_to(std::back_inserter(lines_), ",\"status\":{},\"took_us\":{:.0f}", entry.status,
                 to_microseconds(entry.took));
  if (!entry.hedge.empty()) {
    append_text(lines_, "hedge", entry.hedge);
  }
  if (!entry.request_id.empty()) {
    append_text(lines_, "request_id", entry.request_id);
  }
  if (!entry.traceparent.empty()) {
    append_text(lines_, "traceparent", entry.traceparent);
  }
  lines_ += "}\n";
}

// A log that cannot be written must not hold requests up: it loses lines, and says how many.
void AccessLog::flush() {
  if (fd_ < 0 || lines_.empty()) {
    return;
  }
  if (lost_ > 0) {
    fmt::format_to(std::back_inserter(lines_), "{{\"lost\":{}}}\n", lost_);
    lost_ = 0;
  }
  std::string_view left = lines_;
  while (!left.empty()) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written <= 0) {
      break;
    }
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  lines_.clear();
}

}  // namespace septet::balance
