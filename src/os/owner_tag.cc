#include "os/owner_tag.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "os/process.h"

namespace septet::os {
namespace {

std::string pid_namespace() {
  std::array<char, 64> text{};
  const ssize_t length = readlink("/proc/self/ns/pid", text.data(), text.size() - 1);
  std::string digits;
  for (ssize_t i = 0; i < length; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    if (c >= '0' && c <= '9') {
      digits += c;
    }
  }
  return digits.empty() ? "0" : digits;
}

}  // namespace

std::string owner_tag() {
  const pid_t pid = getpid();
  return fmt::format("{}.{}.{}", pid_namespace(), pid, process_start_time(pid).value_or(0));
}

bool owner_is_gone(std::string_view tag) {
  const auto parts = split(tag, '.');
  if (parts.size() != 3 || parts[0] != pid_namespace()) {
    return false;
  }
  const auto pid = parse_int(parts[1]);
  const auto start = parse_uint(parts[2]);
  return pid && start && process_start_time(static_cast<pid_t>(*pid)) != start;
}

}  // namespace septet::os
