#include "os/sealed_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

namespace septet::os {

namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
// Those who map it later can only read; since Linux 5.1.
constexpr int kReadersOnly = 0x0010;                             // F_SEAL_FUTURE_WRITE
constexpr decltype(statfs::f_type) kOrdinaryPages = 0x01021994;  // TMPFS_MAGIC

Error cannot(const std::string& what) {
  return make_error(ErrorKind::kFailed,
                    fmt::format("cannot {} shared memory: {}", what, std::strerror(errno)));
}

}  // namespace

Result<std::shared_ptr<SealedMemory>> SealedMemory::create(const std::string& name,
                                                           std::size_t bytes) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return cannot("create");
  }
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    return cannot("map");
  }
  std::shared_ptr<SealedMemory> memory(
      new SealedMemory(std::move(fd), static_cast<std::byte*>(base), bytes));
  const int number = memory->fd();
  if (::fcntl(number, F_ADD_SEALS, kSizeSeals | kReadersOnly | F_SEAL_SEAL) != 0 &&
      ::fcntl(number, F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return cannot("seal");
  }
  return memory;
}

Result<std::shared_ptr<const SealedMemory>> SealedMemory::open(const UniqueFd& fd,
                                                               std::size_t bytes) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return make_error(ErrorKind::kUsage, "the shared memory could be shrunk by its owner",
                      "seal its size with F_SEAL_SHRINK and F_SEAL_GROW");
  }
  struct stat status {};
  struct statfs system {};
  if (::fstat(fd.get(), &status) != 0 || ::fstatfs(fd.get(), &system) != 0) {
    return cannot("examine");
  }
  // A page of another kind (a huge one) may be missing when it is touched, which ends in SIGBUS.
  if (system.f_type != kOrdinaryPages || static_cast<std::size_t>(status.st_size) != bytes ||
      bytes == 0) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("the shared memory has {} bytes or unusual pages, not {} bytes",
                                  status.st_size, bytes));
  }
  void* const base = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    return cannot("map");
  }
  return std::shared_ptr<const SealedMemory>(
      new SealedMemory(UniqueFd(), static_cast<std::byte*>(base), bytes));
}

Result<SealedMemory::Identity> SealedMemory::identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return cannot("examine");
  }
  return Identity{status.st_dev, status.st_ino};
}

SealedMemory::~SealedMemory() { ::munmap(data_, size_); }

ssize_t send_with_descriptor(int socket, std::span<const iovec> parts, int descriptor) {
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // the call reads them only
  message.msg_iovlen = parts.size();
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t receive_with_descriptor(int socket, void* to, std::size_t size, UniqueFd& descriptor) {
  iovec part{to, size};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // room for one: the kernel closes the others
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) {
    return got;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header), sizeof number);
      descriptor.reset(number);
    }
  }
  return got;
}

}  // namespace septet::os
