#include "os/lasting_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace septet::os {

namespace {

constexpr std::string_view kPrefix = "septet-lasting.";

Result<Ok> write_text(const std::string& path, const std::string& text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() ||
      write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int reason = errno;
    const ErrorKind kind = reason == ESRCH                       ? ErrorKind::kNotFound
                           : reason == EPERM || reason == EACCES ? ErrorKind::kPermission
                                                                 : ErrorKind::kFailed;
    return make_error(kind,
                      fmt::format("cannot write '{}' to {}: {}", text, path, strerror(reason)));
  }
  return Ok{};
}

// The folder in which a v1 controller is mounted; empty if it is not.
std::string v1_mount(std::string_view controller) {
  std::ifstream file("/proc/self/mounts");
  std::string line;
  while (std::getline(file, line)) {
    const auto fields = split(line, ' ');
    if (fields.size() < 4 || fields[2] != "cgroup") {
      continue;
    }
    const auto options = split(fields[3], ',');
    if (std::find(options.begin(), options.end(), controller) != options.end()) {
      return std::string(fields[1]);
    }
  }
  return {};
}

// Makes the group's folder of a further v1 controller; empty where that cannot be done: what needs
// it then says so.
std::string make_v1_folder(std::string_view controller, const std::string& name) {
  const std::string mount = v1_mount(controller);
  if (mount.empty()) {
    return {};
  }
  const std::string folder = mount + "/" + name;
  return mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST ? folder : std::string();
}

// User and system time of one process, from /proc/PID/stat (proc(5), fields 14 and 15).
Duration processor_time_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return {};
  }
  const auto fields = split(std::string_view(text).substr(name_end + 2), ' ');
  constexpr std::size_t kUserTime = 11;  // field 14, counted from field 3
  if (fields.size() <= kUserTime + 1) {
    return {};
  }
  const std::int64_t ticks =
      parse_int(fields[kUserTime]).value_or(0) + parse_int(fields[kUserTime + 1]).value_or(0);
  static const std::int64_t kTicksPerSecond = sysconf(_SC_CLK_TCK);
  return seconds(ticks) / kTicksPerSecond;
}

}  // namespace

Result<std::unique_ptr<Cgroup>> Cgroup::open_unowned(const CgroupMounts& mounts,
                                                     const std::string& folder_name) {
  std::unique_ptr<Cgroup> group(new Cgroup(mounts.version, {}));
  for (const std::string& parent : mounts.folders) {
    const std::string folder = parent + "/" + folder_name;
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      const bool denied = errno == EACCES || errno == EPERM || errno == EROFS;
      group->leave();
      return make_error(denied ? ErrorKind::kPermission : ErrorKind::kFailed,
                        fmt::format("cannot make control group {}: {}", folder, strerror(errno)),
                        "run the daemon as root, or where /sys/fs/cgroup is writable");
    }
    group->folders_.push_back(folder);
  }
  return group;
}

Result<std::unique_ptr<LastingCgroup>> LastingCgroup::open(const CgroupMounts& mounts,
                                                           const std::string& name) {
  const std::string folder_name = std::string(kPrefix) + name;
  Result<std::unique_ptr<Cgroup>> group = Cgroup::open_unowned(mounts, folder_name);
  SEPTET_TRY(group);
  std::unique_ptr<LastingCgroup> lasting(
      new LastingCgroup(*std::move(group), mounts.version, folder_name));
  if (mounts.version == CgroupVersion::kV1) {
    lasting->freezer_folder_ = make_v1_folder("freezer", folder_name);
    lasting->devices_folder_ = make_v1_folder("devices", folder_name);
  } else {
    lasting->v2_folder_ = mounts.folders.front() + "/" + folder_name;
  }
  return lasting;
}

std::vector<std::string> LastingCgroup::list(const CgroupMounts& mounts) {
  std::vector<std::string> names;
  for (const std::string& parent : mounts.folders) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(parent.c_str()), closedir);
    while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get())) {
      const std::string_view found = entry->d_name;
      if (found.starts_with(kPrefix)) {
        names.emplace_back(found.substr(kPrefix.size()));
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

LastingCgroup::~LastingCgroup() { group_->leave(); }

Result<Ok> LastingCgroup::add(pid_t pid) {
  const std::string text = std::to_string(pid);
  for (const std::string& file : group_->procs_files()) {
    SEPTET_TRY(write_text(file, text));
  }
  for (const std::string* folder : {&freezer_folder_, &devices_folder_}) {
    if (!folder->empty()) {
      SEPTET_TRY(write_text(*folder + "/cgroup.procs", text));
    }
  }
  return Ok{};
}

Duration LastingCgroup::processor_time() const {
  Duration sum{};
  for (const int pid : processes()) {
    sum += processor_time_of(pid);
  }
  return sum;
}

void LastingCgroup::signal_all(int signal) {
  for (const int pid : processes()) {
    kill(pid, signal);
  }
}

Result<Ok> LastingCgroup::set_frozen(Frozen frozen) {
  if (version_ == CgroupVersion::kV2) {
    return write_text(v2_folder_ + "/cgroup.freeze", frozen == Frozen::kYes ? "1" : "0");
  }
  if (freezer_folder_.empty()) {
    return make_error(ErrorKind::kPrecondition,
                      "cannot pause processes: the freezer controller is not mounted");
  }
  return write_text(freezer_folder_ + "/freezer.state",
                    frozen == Frozen::kYes ? "FROZEN" : "THAWED");
}

Result<Ok> LastingCgroup::restrict_devices(const std::vector<GuardedMajor>& majors) {
  if (version_ == CgroupVersion::kV2) {
    return attach_device_program(v2_folder_, majors);
  }
  if (devices_folder_.empty()) {
    return make_error(ErrorKind::kPrecondition,
                      "cannot restrict devices: the devices controller is not mounted");
  }
  return deny_devices_v1(devices_folder_, majors);
}

Result<Ok> LastingCgroup::kill_all() {
  // What is frozen does not notice a signal, on v1 not even the last one.
  (void)set_frozen(Frozen::kNo);
  return group_->kill_all();
}

Result<Ok> LastingCgroup::remove() {
  SEPTET_TRY(kill_all());
  for (const std::string* folder : {&freezer_folder_, &devices_folder_}) {
    if (!folder->empty() && rmdir(folder->c_str()) != 0 && errno != ENOENT) {
      return make_error(ErrorKind::kFailed, fmt::format("cannot remove control group {}: {}",
                                                        *folder, strerror(errno)));
    }
  }
  return group_->remove();
}

}  // namespace septet::os
