#include "partition/edge/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "os/durable_file.h"

namespace septet::partition {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string standard_path() {
  if (const std::string named = variable("SEPTET_STATE_DIR"); !named.empty()) {
    return named;
  }
  if (::geteuid() == 0) {
    return "/var/lib/septet";
  }
  if (const std::string home = variable("XDG_STATE_HOME"); !home.empty()) {
    return home + "/septet";
  }
  return variable("HOME") + "/.local/state/septet";
}

// A file that may be missing.
Result<std::optional<std::string>> read_if_there(const std::string& path) {
  auto text = os::read_whole_file(path);
  if (!text.ok() && text.error().kind == ErrorKind::kNotFound) {
    return std::optional<std::string>();
  }
  SEPTET_TRY(text);
  return std::optional(*std::move(text));
}

Error cannot_lock(const std::string& path, int code) {
  const ErrorKind kind = code == EACCES || code == EROFS || code == EPERM ? ErrorKind::kPermission
                                                                          : ErrorKind::kFailed;
  return make_error(kind, fmt::format("cannot lock the GPU by {}: {}", path, std::strerror(code)),
                    "name a folder that can be written in SEPTET_STATE_DIR");
}

}  // namespace

StateFolder StateFolder::standard(bool simulated) {
  return StateFolder(standard_path() + (simulated ? "/simulated" : ""));
}

std::string StateFolder::gpu_folder(const gpu::GpuUuid& gpu) const {
  return fmt::format("{}/gpus/{}", path_, gpu.value());
}

Result<std::optional<Intent>> StateFolder::read_intent(const gpu::GpuUuid& gpu) const {
  auto text = read_if_there(journal_path(gpu));
  SEPTET_TRY(text);
  if (!*text) {
    return std::optional<Intent>();
  }
  auto intent = read_journal(**text, journal_path(gpu));
  SEPTET_TRY(intent);
  if (intent->gpu != gpu) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("{}:1: the journal is about another GPU, {}", journal_path(gpu),
                                  intent->gpu.value()),
                      "the GPU was not touched; move the file away");
  }
  return std::optional(*std::move(intent));
}

Result<std::optional<StoredLayout>> StateFolder::read_desired(const gpu::GpuUuid& gpu) const {
  auto text = read_if_there(desired_path(gpu));
  SEPTET_TRY(text);
  if (!*text) {
    return std::optional<StoredLayout>();
  }
  auto stored = read_stored_layout(**text, desired_path(gpu));
  SEPTET_TRY(stored);
  return std::optional(*std::move(stored));
}

Result<GpuLock> GpuLock::take(const StateFolder& state, const gpu::GpuUuid& gpu) {
  if (auto made = os::make_folder(state.gpu_folder(gpu)); !made.ok()) {
    Error error = made.error();
    error.hint = "name a folder that can be written in SEPTET_STATE_DIR";
    return error;
  }
  const std::string path = state.gpu_folder(gpu) + "/lock";
  os::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    return cannot_lock(path, errno);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return cannot_lock(path, errno);
    }
    const auto holder = os::read_whole_file(path);
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("GPU {} is being changed by another septet (process {})",
                                  gpu.value(), holder.ok() ? trim(*holder) : "unknown"),
                      "wait for it, then repeat");
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return cannot_lock(path, errno);
  }
  return GpuLock(std::move(fd));
}

}  // namespace septet::partition
