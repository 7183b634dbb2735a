#include "os/named_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace septet::os {

namespace {

constexpr const char* kFolder = "/dev/shm";  // where shm_open puts them on Linux
constexpr mode_t kOwnerOnly = 0600;
constexpr int kTries = 8;

Error cannot(const std::string& what, int error) {
  return make_error(ErrorKind::kFailed, fmt::format("cannot {} shared memory in {}: {}", what,
                                                    kFolder, std::strerror(error)));
}

void drop_pages(int fd, std::size_t bytes) {
  // Where this fails, they go with the last mapping.
  static_cast<void>(
      ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)));
}

// A creator that lives holds the lock of what it made.
void remove_leftovers(const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix + "-")) {
      continue;
    }
    const UniqueFd fd(::open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 &&
        ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode)) {
      drop_pages(fd.get(), static_cast<std::size_t>(status.st_size));
      ::unlink(entry.path().c_str());
    }
  }
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

// New, locked, and not taken for a leftover by another that starts just now; with errno else.
UniqueFd make_object(const std::string& key) {
  UniqueFd fd(::shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, kOwnerOnly));
  struct stat status {};
  if (fd.valid() && (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ::fstat(fd.get(), &status) != 0 ||
                     status.st_nlink == 0)) {
    ::shm_unlink(key.c_str());
    errno = EEXIST;
    fd.reset();
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<NamedMemory>> NamedMemory::create(const std::string& prefix,
                                                         std::size_t bytes) {
  remove_leftovers(prefix);
  struct statvfs room {};
  if (::statvfs(kFolder, &room) != 0) {
    return cannot("find", errno);
  }
  if (bytes > room.f_bavail * room.f_frsize / 4) {
    return make_error(ErrorKind::kNoCapacity,
                      fmt::format("{} has {} bytes left, of which a quarter is less than {} bytes",
                                  kFolder, room.f_bavail * room.f_frsize, bytes),
                      "enlarge it (docker run --shm-size)");
  }
  std::string key;
  UniqueFd fd;
  for (int i = 0; i < kTries && !fd.valid(); ++i) {
    key = fmt::format("/{}-{}-{:016x}", prefix, ::getpid(), random_number());
    fd = make_object(key);
  }
  if (!fd.valid()) {
    return cannot("create", errno);
  }
  const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  void* const base = error != 0
                         ? MAP_FAILED
                         : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    const int why = error != 0 ? error : errno;
    ::shm_unlink(key.c_str());
    return cannot("take", why);
  }
  return std::unique_ptr<NamedMemory>(
      new NamedMemory(std::move(key), std::move(fd), static_cast<std::byte*>(base), bytes));
}

NamedMemory::~NamedMemory() {
  ::munmap(data_, size_);
  drop_pages(fd_.get(), size_);
  ::shm_unlink(key_.c_str());
}

}  // namespace septet::os
