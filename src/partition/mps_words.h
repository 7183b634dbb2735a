// The words of NVIDIA's MPS control program: commands that are right, answers that are understood.
//
// The program takes nonsense silently (a percentage of 101 becomes 100, a limit without unit is
// accepted) and ends with code 0 after an unknown command, so commands are checked before they are
// sent and answers are read for what they say. Sources: nvidia-cuda-mps-control(1) and the
// behaviour of version 535. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace septet::partition {

// Limits that a daemon gives to clients which state none, and that no client can exceed upwards.
struct MpsDefaults {
  unsigned thread_percent = 100;             // 1..100
  std::optional<std::int64_t> memory_mib{};  // of device 0, the only one of its daemon
  unsigned priority = 0;                     // 0 normal, 1 below normal
  bool operator==(const MpsDefaults&) const = default;
};

// kUsage names the field that is out of range.
Result<Ok> check(const MpsDefaults& defaults);

// The commands that set the defaults; check() has passed.
std::vector<std::string> set_commands(const MpsDefaults& defaults);

// What the control program said, judged: kFailed for "Unknown command" and refused values,
// kNotFound for a server that is not there, kPrecondition when no daemon answers. The text
// otherwise.
Result<std::string> judge_answer(const std::string& command, const std::string& output,
                                 const std::string& errors);

// "14.3" -> 14.3.
std::optional<double> parse_mps_percent(std::string_view text);
// Whether a percentage read back is the one that was set: it is shown rounded to a tenth.
bool same_percent(double read_back, unsigned wanted);
// "5G", "512M" -> MiB.
std::optional<std::int64_t> parse_mps_memory_mib(std::string_view text);
// One process id per line; other lines are left out.
std::vector<int> parse_pids(std::string_view text);
// The daemon's process id in a line of its log, "[2026-01-31 10:00:00.123 Control 4242] ...".
std::optional<int> daemon_pid_in_log(std::string_view log);
// Whether the log says that the server it last started has ended, and how: "status 1".
std::optional<std::string> server_failure_in_log(std::string_view log);

}  // namespace septet::partition
