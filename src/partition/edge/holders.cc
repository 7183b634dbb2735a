#include "partition/edge/holders.h"

#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "os/clock.h"
#include "os/durable_file.h"
#include "os/process.h"
#include "os/unique_fd.h"

namespace septet::partition {
namespace {

struct KnownProgram {
  std::string_view name;  // as /proc/PID/comm shows it, at most 15 characters
  std::string_view hint;
};
constexpr std::array kKnownPrograms = {
    KnownProgram{"nv-hostengine", "systemctl stop nvidia-dcgm"},
    KnownProgram{"dcgm-exporter", "systemctl stop dcgm-exporter"},
    KnownProgram{"nvidia-persiste", "systemctl stop nvidia-persistenced"},
    KnownProgram{"nv-fabricmanage", "systemctl stop nvidia-fabricmanager"},
    KnownProgram{"Xorg", "systemctl isolate multi-user.target"},
    KnownProgram{"gnome-shell", "systemctl isolate multi-user.target"},
    KnownProgram{"nvsm", "systemctl stop nvsm"}};

std::string read_or_empty(const std::string& path) {
  auto text = os::read_whole_file(path);
  return text.ok() ? *std::move(text) : std::string();
}

std::string user_name(uid_t uid) {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return fmt::format("{}", uid);
}

// The unit and container in lines like
// "0::/system.slice/docker-0123456789abcdef....scope" or "1:name=systemd:/user.slice/x.service".
void read_groups(const std::string& text, Holder& holder) {
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t path = line.rfind(':');
    if (path == std::string_view::npos) {
      continue;
    }
    for (const std::string_view part : split(line.substr(path + 1), '/')) {
      if (part.ends_with(".service")) {
        holder.unit = std::string(part);
      }
      const std::size_t id = part.find_first_of("0123456789abcdef");
      const std::size_t dash = part.rfind('-');
      const std::string_view digits =
          part.substr(dash != std::string_view::npos ? dash + 1 : std::min(id, part.size()));
      if (digits.substr(0, digits.find('.')).size() == 64 &&
          digits.substr(0, 64).find_first_not_of("0123456789abcdef") == std::string_view::npos) {
        holder.container = std::string(digits.substr(0, 12));
      }
    }
  }
}

bool is_ours(const std::string& process_folder) {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink(process_folder + "/exe", failed);
  return !failed && program == os::own_program_path();
}

Holder describe(std::int64_t pid, const std::string& root) {
  const std::string folder = fmt::format("{}/proc/{}", root, pid);
  Holder holder;
  holder.pid = pid;
  holder.name = std::string(trim(read_or_empty(folder + "/comm")));
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0) {
    holder.user = user_name(info.st_uid);
  }
  read_groups(read_or_empty(folder + "/cgroup"), holder);
  for (const KnownProgram& known : kKnownPrograms) {
    if (holder.name == known.name) {
      holder.hint = std::string(known.hint);
    }
  }
  holder.ours = is_ours(folder);
  return holder;
}

// "Device Minor: \t 0" of /proc/driver/nvidia/gpus/BDF/information.
std::optional<std::uint64_t> device_minor(const gpu::GpuState& state, const std::string& root) {
  // The driver writes the domain with four digits, NVML with eight.
  const std::string bus = state.pci_bus_id.size() > 12
                              ? state.pci_bus_id.substr(state.pci_bus_id.size() - 12)
                              : state.pci_bus_id;
  const std::string text =
      read_or_empty(fmt::format("{}/proc/driver/nvidia/gpus/{}/information", root, to_lower(bus)));
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("Device Minor:")) {
      return parse_uint(trim(line.substr(13)));
    }
  }
  return std::nullopt;
}

// Device file -> the GPU instance that it opens (nothing: the GPU as such).
using DeviceFiles = std::map<std::string, std::optional<gpu::GpuInstanceId>>;

DeviceFiles device_files(std::uint64_t minor, const std::string& root) {
  DeviceFiles files;
  files.emplace(fmt::format("/dev/nvidia{}", minor), std::nullopt);
  const std::string prefix = fmt::format("gpu{}/gi", minor);
  const std::string text = read_or_empty(root + "/proc/driver/nvidia-caps/mig-minors");
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(prefix)) {
      continue;
    }
    const std::size_t slash = line.find('/', prefix.size());
    const auto instance = parse_uint(line.substr(prefix.size(), slash - prefix.size()));
    if (instance) {
      files.emplace(fmt::format("/dev/nvidia-caps/nvidia-cap{}", line.substr(line.rfind(' ') + 1)),
                    gpu::GpuInstanceId(static_cast<unsigned>(*instance)));
    }
  }
  return files;
}

// The part of the GPU that a process has open: outer nothing = it does not hold it.
std::optional<std::optional<gpu::GpuInstanceId>> held_part(const std::string& process_folder,
                                                           const DeviceFiles& files) {
  std::optional<std::optional<gpu::GpuInstanceId>> held;
  std::error_code failed;
  for (std::filesystem::directory_iterator fd(process_folder + "/fd", failed), end;
       !failed && fd != end; fd.increment(failed)) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(fd->path(), gone);
    const auto file = gone ? files.end() : files.find(target.string());
    if (file != files.end() && (!held || file->second)) {
      held = file->second;
    }
  }
  if (!held) {
    const std::string maps = read_or_empty(process_folder + "/maps");
    for (const auto& [file, part] : files) {
      if (maps.find(' ' + file + '\n') != std::string::npos) {
        held = part;
      }
    }
  }
  return held;
}

void add_openers(const gpu::GpuState& state, const std::string& root,
                 std::vector<Holder>& holders) {
  const auto minor = device_minor(state, root);
  if (!minor) {
    return;
  }
  const DeviceFiles files = device_files(*minor, root);
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(root + "/proc", failed), end;
       !failed && entry != end; entry.increment(failed)) {
    const auto pid = parse_int(entry->path().filename().string());
    const bool known = pid && std::any_of(holders.begin(), holders.end(),
                                          [&](const Holder& h) { return h.pid == *pid; });
    if (!pid || known || *pid == ::getpid()) {
      continue;
    }
    if (const auto part = held_part(entry->path().string(), files)) {
      Holder holder = describe(*pid, root);
      holder.gpu_instance = *part;
      holders.push_back(std::move(holder));
    }
  }
}

// Waits until the process has ended.
bool wait_for_end(const os::UniqueFd& process, Instant deadline) {
  while (true) {
    const Duration left = deadline - os::now();
    pollfd waiting{process.get(), POLLIN, 0};
    const int milliseconds_left =
        static_cast<int>(std::max<std::int64_t>(0, left.count() / 1000000));
    const int ready = ::poll(&waiting, 1, milliseconds_left);
    if (ready > 0) {
      return true;
    }
    if (ready == 0) {
      return false;
    }
  }
}

}  // namespace

std::string Holder::text() const {
  std::string text = fmt::format("{} (pid {}", name.empty() ? "a process" : name, pid);
  text += user.empty() ? "" : fmt::format(", user {}", user);
  text += unit.empty() ? "" : fmt::format(", unit {}", unit);
  text += container.empty() ? "" : fmt::format(", container {}", container);
  return text + ")";
}

std::vector<Holder> find_holders(const gpu::GpuState& state, bool simulated,
                                 const std::string& root) {
  std::vector<Holder> holders;
  for (const gpu::GpuProcess& process : state.processes) {
    Holder holder = describe(process.pid, root);
    holder.name = holder.name.empty() ? process.name : holder.name;
    holder.gpu_instance = process.gpu_instance;
    holders.push_back(std::move(holder));
  }
  if (!simulated || !root.empty()) {
    add_openers(state, root, holders);
  }
  std::sort(holders.begin(), holders.end(),
            [](const Holder& a, const Holder& b) { return a.pid < b.pid; });
  return holders;
}

std::vector<std::string> blocking_modules(const std::string& root) {
  std::vector<std::string> modules;
  const std::string text = read_or_empty(root + "/proc/modules");
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    if (fields.size() < 4 || (fields[0] != "nvidia_drm" && fields[0] != "nvidia_modeset" &&
                              fields[0] != "nvidia_peermem" && fields[0] != "nvidia_uvm")) {
      continue;
    }
    if (fields[2] != "0") {
      modules.push_back(fmt::format("{} ({} users)", fields[0], fields[2]));
    }
  }
  return modules;
}

std::string holders_text(const std::vector<Holder>& holders) {
  std::vector<std::string> texts;
  for (const Holder& holder : holders) {
    texts.push_back(holder.text());
  }
  return "held by " + join_words(texts);
}

std::string holders_hint(const std::vector<Holder>& holders) {
  std::vector<std::string> hints;
  bool ours = false;
  for (const Holder& holder : holders) {
    ours = ours || holder.ours;
    if (!holder.hint.empty() && std::find(hints.begin(), hints.end(), holder.hint) == hints.end()) {
      hints.push_back(holder.hint);
    }
  }
  if (ours) {
    hints.push_back("let septet's own leave with --drain SECONDS");
  }
  return hints.empty() ? "end these processes, then repeat" : join_words(hints);
}

std::vector<Holder> drain(std::vector<Holder> holders, Duration timeout) {
  const Instant deadline = os::now() + timeout;
  std::vector<std::pair<Holder, os::UniqueFd>> leaving;
  std::vector<Holder> staying;
  for (Holder& holder : holders) {
    os::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, holder.pid, 0)));
    if (!process.valid()) {
      continue;  // it has left already
    }
    if (!holder.ours || ::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0) {
      staying.push_back(std::move(holder));
      continue;
    }
    leaving.emplace_back(std::move(holder), std::move(process));
  }
  for (auto& [holder, process] : leaving) {
    if (!wait_for_end(process, deadline)) {
      staying.push_back(std::move(holder));
    }
  }
  return staying;
}

std::string standard_root() {
  const char* root = std::getenv("SEPTET_SYSROOT");
  return root == nullptr ? std::string() : std::string(root);
}

}  // namespace septet::partition
