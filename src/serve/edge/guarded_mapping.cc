#include "serve/edge/guarded_mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "os/unique_fd.h"

namespace septet::serve {

namespace {

// A signal handler can be handed nothing, so what it looks at has to be global: lock-free slots,
// written by open and the destructor.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> broken{false};
};
std::array<Slot, GuardedMapping::kMaxMappings> slots;
struct sigaction previous_action;

// Async-signal-safe: atomics and system calls only.
void on_bus_error(int number, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Slot& slot : slots) {
    const std::uintptr_t begin = slot.begin.load();
    const std::uintptr_t end = slot.end.load();
    if (begin != 0 && at >= begin && at < end) {
      slot.broken.store(true);
      void* covered = ::mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      if (covered != MAP_FAILED) {
        return;
      }
    }
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(number, info, context);
  } else {
    ::signal(SIGBUS, SIG_DFL);  // not ours: the access is repeated and ends the process
  }
}

void install_handler() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &previous_action);
  });
}

// A free slot, taken; kMaxMappings when there is none.
std::size_t take_slot() {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].taken.exchange(true)) {
      slots[i].broken.store(false);
      return i;
    }
  }
  return slots.size();
}

Error cannot_map(const std::string& key, ErrorKind kind, const std::string& why) {
  return make_error(kind, fmt::format("unable to open shared memory region '{}': {}", key, why));
}

}  // namespace

Result<std::unique_ptr<GuardedMapping>> GuardedMapping::open(const std::string& key,
                                                             std::uint64_t offset,
                                                             std::uint64_t byte_size) {
  if (key.size() < 2 || key.size() > 255 || key.front() != '/' ||
      key.find('/', 1) != std::string::npos || key.find('\0') != std::string::npos) {
    return cannot_map(key, ErrorKind::kUsage, "a key is '/' and a name without further '/'");
  }
  const os::UniqueFd fd(::shm_open(key.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!fd.valid()) {
    return cannot_map(key, ErrorKind::kNotFound, std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_size < 0) {
    return cannot_map(key, ErrorKind::kFailed, std::strerror(errno));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (byte_size == 0 || offset > size || byte_size > size - offset) {
    return cannot_map(
        key, ErrorKind::kUsage,
        fmt::format("offset {} and byte_size {} reach past its {} bytes", offset, byte_size, size));
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t lead = offset % page;
  const std::size_t mapped = (lead + byte_size + page - 1) / page * page;
  const std::size_t slot = take_slot();
  if (slot == slots.size()) {
    return cannot_map(key, ErrorKind::kNoCapacity,
                      fmt::format("{} regions are registered already", kMaxMappings));
  }
  install_handler();
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                      static_cast<off_t>(offset - lead));
  if (base == MAP_FAILED) {
    slots[slot].taken.store(false);
    return cannot_map(key, ErrorKind::kFailed, std::strerror(errno));
  }
  slots[slot].end.store(reinterpret_cast<std::uintptr_t>(base) + mapped);
  slots[slot].begin.store(reinterpret_cast<std::uintptr_t>(base));
  return std::unique_ptr<GuardedMapping>(
      new GuardedMapping(slot, base, mapped, {static_cast<std::byte*>(base) + lead, byte_size}));
}

GuardedMapping::GuardedMapping(std::size_t slot, void* base, std::size_t mapped,
                               std::span<std::byte> bytes)
    : slot_(slot), base_(base), mapped_(mapped), bytes_(bytes) {}

GuardedMapping::~GuardedMapping() {
  slots[slot_].begin.store(0);
  slots[slot_].end.store(0);
  ::munmap(base_, mapped_);
  slots[slot_].taken.store(false);
}

bool GuardedMapping::is_broken() const { return slots[slot_].broken.load(); }

}  // namespace septet::serve
