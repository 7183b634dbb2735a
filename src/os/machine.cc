#include "os/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>

#include "base/text.h"

namespace septet::os {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) {
      return std::string(trim(std::string_view(line).substr(line.find(':') + 1)));
    }
  }
  utsname names{};
  return uname(&names) == 0 ? names.machine : "";
}

// The limit of this container, where there is one; a huge number means none.
std::int64_t memory_limit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::int64_t bytes = 0;
    if (file >> bytes && bytes > 0) {
      return bytes;
    }
  }
  return INT64_MAX;
}

}  // namespace

std::string Machine::text() const {
  return fmt::format("{} x {}, {:.0f} GiB", cpus, cpu_name.empty() ? "processor" : cpu_name,
                     static_cast<double>(memory_bytes) / kGib);
}

Machine this_machine() {
  Machine machine;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    machine.cpus = CPU_COUNT(&set);
  }
  struct sysinfo info {};
  if (sysinfo(&info) == 0) {
    machine.memory_bytes =
        std::min(static_cast<std::int64_t>(info.totalram) * info.mem_unit, memory_limit());
  }
  machine.cpu_name = cpu_name();
  return machine;
}

}  // namespace septet::os
