#include "partition/mps_words.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace septet::partition {

namespace {

constexpr double kPercentTolerance = 0.05;  // it prints one decimal

}  // namespace

Result<Ok> check(const MpsDefaults& defaults) {
  if (defaults.thread_percent < 1 || defaults.thread_percent > 100) {
    return make_error(ErrorKind::kUsage, fmt::format("a thread percentage of {} is not from 1 to "
                                                     "100",
                                                     defaults.thread_percent));
  }
  if (defaults.memory_mib && *defaults.memory_mib < 1) {
    return make_error(ErrorKind::kUsage, fmt::format("a memory limit of {} MiB is not above zero",
                                                     *defaults.memory_mib));
  }
  if (defaults.priority > 1) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("a client priority of {} is neither 0 (normal) nor 1 (below)",
                                  defaults.priority));
  }
  return Ok{};
}

std::vector<std::string> set_commands(const MpsDefaults& defaults) {
  std::vector<std::string> commands = {
      fmt::format("set_default_active_thread_percentage {}", defaults.thread_percent),
      fmt::format("set_default_client_priority {}", defaults.priority)};
  if (defaults.memory_mib) {
    commands.push_back(
        fmt::format("set_default_device_pinned_mem_limit 0 {}M", *defaults.memory_mib));
  }
  return commands;
}

Result<std::string> judge_answer(const std::string& command, const std::string& output,
                                 const std::string& errors) {
  if (errors.find("Cannot find MPS control daemon process") != std::string::npos) {
    return make_error(ErrorKind::kPrecondition, "no MPS control daemon answers");
  }
  for (const std::string_view line : split(output, '\n')) {
    const std::string_view text = trim(line);
    if (text.starts_with("Unknown command") || text.starts_with("Invalid") ||
        text.starts_with("Failed")) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("the MPS control daemon refuses '{}': {}", command, text));
    }
    if (text.ends_with("not found")) {
      return make_error(ErrorKind::kNotFound, fmt::format("'{}': {}", command, text));
    }
  }
  return output;
}

std::optional<double> parse_mps_percent(std::string_view text) { return parse_double(trim(text)); }

bool same_percent(double read_back, unsigned wanted) {
  return std::abs(read_back - wanted) <= kPercentTolerance;
}

std::optional<std::int64_t> parse_mps_memory_mib(std::string_view text) {
  std::string_view word = trim(text);
  if (word.empty()) {
    return std::nullopt;
  }
  const char unit = word.back();
  word.remove_suffix(1);
  const auto number = parse_int(word);
  if (!number || *number < 0 || (unit != 'G' && unit != 'M')) {
    return std::nullopt;
  }
  return unit == 'G' ? *number * 1024 : *number;
}

std::vector<int> parse_pids(std::string_view text) {
  std::vector<int> pids;
  for (const std::string_view line : split(text, '\n')) {
    const auto pid = parse_uint(trim(line));
    if (pid && *pid > 0 && *pid <= 4194304) {  // the kernel's largest pid_max
      pids.push_back(static_cast<int>(*pid));
    }
  }
  return pids;
}

std::optional<int> daemon_pid_in_log(std::string_view log) {
  std::optional<int> pid;
  for (const std::string_view line : split(log, '\n')) {
    constexpr std::string_view kWord = " Control ";
    const std::size_t word = line.find(kWord);
    const std::size_t bracket = line.find(']');
    if (!line.starts_with('[') || word == std::string_view::npos ||
        bracket == std::string_view::npos || bracket < word + kWord.size()) {
      continue;
    }
    const std::size_t begin = word + kWord.size();
    if (const auto number = parse_uint(trim(line.substr(begin, bracket - begin)))) {
      pid = static_cast<int>(*number);  // the last daemon that wrote
    }
  }
  return pid;
}

std::optional<std::string> server_failure_in_log(std::string_view log) {
  std::optional<std::string> failure;
  for (const std::string_view line : split(log, '\n')) {
    if (line.find("Starting new server") != std::string_view::npos) {
      failure.reset();
    } else if (const std::size_t at = line.find("exited with status");
               at != std::string_view::npos) {
      failure = std::string(trim(line.substr(at + std::string_view("exited with ").size())));
    }
  }
  return failure;
}

}  // namespace septet::partition
