#include "gpu/edge/simulation_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "gpu/edge/simulation_codec.h"
#include "gpu/simulated_sysroot.h"
#include "os/clock.h"
#include "os/unique_fd.h"

namespace septet::gpu {
namespace {

Error failed(const std::string& what, const std::string& path) {
  const int reason = errno;
  const ErrorKind kind = reason == EACCES || reason == EROFS || reason == EPERM
                             ? ErrorKind::kPermission
                             : ErrorKind::kFailed;
  return make_error(kind, fmt::format("cannot {} {}: {}", what, path, std::strerror(reason)));
}

std::optional<std::string> read_file(const std::string& path) {
  const os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return std::nullopt;
  }
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return count == 0 ? std::optional(text) : std::nullopt;
    }
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

enum class LockKind { kShared, kExclusive };

// The lock lives as long as the descriptor.
Result<os::UniqueFd> lock_file(const std::string& path, LockKind kind) {
  os::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return failed("open", path);
  }
  const int operation = kind == LockKind::kShared ? LOCK_SH : LOCK_EX;
  while (::flock(fd.get(), operation) != 0) {
    if (errno != EINTR) {
      return failed("lock", path);
    }
  }
  return fd;
}

bool is_dead(const SimulatedClient& client) {
  return client.start_time != 0 && process_start_time(client.pid) != client.start_time;
}

bool has_dead_clients(const SimulatedNode& node) {
  return std::any_of(node.gpus.begin(), node.gpus.end(), [](const SimulatedGpu& gpu) {
    return std::any_of(gpu.clients.begin(), gpu.clients.end(), is_dead);
  });
}

// Clients, counters and faults do not show in /proc and /sys.
bool changes_sysroot(const SimulatedNode& before, const SimulatedNode& after) {
  for (std::size_t i = 0; i < after.gpus.size() && i < before.gpus.size(); ++i) {
    if (before.gpus[i].instances != after.gpus[i].instances ||
        before.gpus[i].minor != after.gpus[i].minor) {
      return true;
    }
  }
  return before.gpus.size() != after.gpus.size();
}

void drop_dead_clients(SimulatedNode& node) {
  for (SimulatedGpu& gpu : node.gpus) {
    std::erase_if(gpu.clients, is_dead);
  }
}

}  // namespace

std::uint64_t process_start_time(std::int64_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) {
    return 0;
  }
  // The name in brackets may hold blanks: count fields from behind it, where field 3 follows.
  const auto bracket = stat->rfind(')');
  if (bracket == std::string::npos || bracket + 2 > stat->size()) {
    return 0;
  }
  const auto fields = split(std::string_view(*stat).substr(bracket + 2), ' ');
  constexpr std::size_t kStartTime = 22 - 3;
  return fields.size() > kStartTime ? parse_uint(fields[kStartTime]).value_or(0) : 0;
}

bool SimulationStore::exists() const { return ::access(path("state").c_str(), F_OK) == 0; }

Result<Ok> SimulationStore::create(const SimulatedNode& node) const {
  std::error_code ignored;
  std::filesystem::create_directories(directory_, ignored);
  const std::string lock_path = path("lock");
  const os::UniqueFd made(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!made.valid()) {
    return failed("create a simulated node in", directory_);
  }
  const auto lock = lock_file(lock_path, LockKind::kExclusive);
  if (!lock.ok()) {
    return lock.error();
  }
  if (exists()) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("there is a simulated node in {} already", directory_),
                      "use it, or remove it with septet sim destroy");
  }
  // Generations of a node made anew never repeat those that another process may still remember.
  SimulatedNode fresh = node;
  fresh.generation = static_cast<std::uint64_t>(os::unix_time_ns());
  return store(fresh);
}

Result<Ok> SimulationStore::destroy() const {
  if (!exists()) {
    return make_error(ErrorKind::kNotFound, fmt::format("no simulated node in {}", directory_));
  }
  const auto lock = lock_file(path("lock"), LockKind::kExclusive);
  if (!lock.ok()) {
    return lock.error();
  }
  std::error_code error;
  std::filesystem::remove_all(path("sysroot"), error);
  std::filesystem::remove_all(path("sysroot.new"), error);
  for (const char* name : {"state", "state.new", "lock"}) {
    if (::unlink(path(name).c_str()) != 0 && errno != ENOENT) {
      return failed("remove", path(name));
    }
  }
  ::rmdir(directory_.c_str());  // stays where others keep files in it
  return Ok{};
}

// Called under the lock.
Result<SimulatedNode> SimulationStore::load() const {
  const auto text = read_file(path("state"));
  if (!text) {
    if (errno == ENOENT) {
      return make_error(ErrorKind::kNotFound, fmt::format("no simulated node in {}", directory_),
                        "create one with septet sim create");
    }
    return failed("read", path("state"));
  }
  const std::scoped_lock guard(mutex_);
  if (has_cached_ && generation_of(*text) == cached_.generation) {
    return cached_;
  }
  auto node = decode(*text, path("state"));
  if (node.ok()) {
    cached_ = *node;
    has_cached_ = true;
  }
  return node;
}

// Called under the exclusive lock.
Result<Ok> SimulationStore::store(const SimulatedNode& node) const {
  const std::string next = path("state.new");
  {
    const os::UniqueFd fd(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd.valid() || !write_all(fd.get(), encode(node))) {
      return failed("write", next);
    }
  }
  if (::rename(next.c_str(), path("state").c_str()) != 0) {
    return failed("replace", path("state"));
  }
  return Ok{};
}

// A new tree beside the old one, then swapped in: a reader finds one or the other, or for a moment
// none. Called under the exclusive lock.
Result<Ok> SimulationStore::write_sysroot(const SimulatedNode& node) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path next = path("sysroot.new");
  fs::remove_all(next, error);
  for (const RenderedFile& file : render_sysroot(node)) {
    const fs::path target = next / file.path;
    fs::create_directories(target.parent_path(), error);
    if (file.is_link) {
      fs::create_symlink(file.content, target, error);
      continue;
    }
    const os::UniqueFd fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid() || !write_all(fd.get(), file.content)) {
      return failed("write", target.string());
    }
  }
  fs::remove_all(path("sysroot"), error);
  fs::rename(next, path("sysroot"), error);
  return error ? Result<Ok>(make_error(
                     ErrorKind::kFailed,
                     fmt::format("cannot render {}: {}", path("sysroot"), error.message())))
               : Result<Ok>(Ok{});
}

Result<Ok> SimulationStore::render() const {
  const auto lock = lock_file(path("lock"), LockKind::kExclusive);
  if (!lock.ok()) {
    return exists() ? lock.error() : load().error();
  }
  const auto node = load();
  return node.ok() ? write_sysroot(*node) : node.error();
}

Result<SimulatedNode> SimulationStore::read() const {
  {
    const auto lock = lock_file(path("lock"), LockKind::kShared);
    if (!lock.ok()) {
      return exists() ? lock.error() : load().error();
    }
    auto node = load();
    if (!node.ok() || !has_dead_clients(*node)) {
      return node;
    }
  }
  SimulatedNode result;
  SEPTET_TRY(update([&](SimulatedNode& node) { result = node; }));
  return result;
}

Result<Ok> SimulationStore::update(const std::function<void(SimulatedNode&)>& change) const {
  const auto lock = lock_file(path("lock"), LockKind::kExclusive);
  if (!lock.ok()) {
    return exists() ? lock.error() : load().error();
  }
  const auto loaded = load();
  if (!loaded.ok()) {
    return loaded.error();
  }
  SimulatedNode node = *loaded;
  drop_dead_clients(node);
  change(node);
  if (node == *loaded) {
    return Ok{};
  }
  ++node.generation;
  SEPTET_TRY(store(node));
  const bool has_sysroot = ::access(path("sysroot").c_str(), F_OK) == 0;
  return has_sysroot && changes_sysroot(*loaded, node) ? write_sysroot(node) : Ok{};
}

}  // namespace septet::gpu
