// SealedMemory: memory that two processes share and neither can shrink.
//
// The creator writes; its descriptor goes to the others over a Unix socket, and they map it to read
// only. The size is sealed (F_SEAL_SHRINK, F_SEAL_GROW), so an access never ends in SIGBUS,
// whatever the other process does. The kernel frees it when the last descriptor and mapping are
// gone, also of processes that were killed. Any thread may use the bytes.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::os {

class SealedMemory {
 public:
  // Which memory it is, of all on this machine.
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const Identity&) const = default;
  };

  // New memory, zeros, taken from the system page by page when it is written. The name is for
  // people (/proc/PID/maps).
  static Result<std::shared_ptr<SealedMemory>> create(const std::string& name, std::size_t bytes);
  // Another process's memory, to read. kUsage unless it is what create() makes: sealed, of ordinary
  // pages, of exactly that size.
  static Result<std::shared_ptr<const SealedMemory>> open(const UniqueFd& fd, std::size_t bytes);
  static Result<Identity> identity_of(int fd);
  ~SealedMemory();
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;

  std::size_t size() const { return size_; }
  const std::byte* data() const { return data_; }
  // Of memory that was created here.
  std::byte* data() { return data_; }
  int fd() const { return fd_.get(); }

 private:
  SealedMemory(UniqueFd fd, std::byte* data, std::size_t size)
      : fd_(std::move(fd)), data_(data), size_(size) {}

  UniqueFd fd_;
  std::byte* data_;
  std::size_t size_;
};

// sendmsg with a descriptor beside the first byte; nothing of it is sent where that byte is not.
ssize_t send_with_descriptor(int socket, std::span<const iovec> parts, int descriptor);
// recv that also takes a descriptor which came along; it replaces the one in `descriptor`. Further
// ones are closed.
ssize_t receive_with_descriptor(int socket, void* to, std::size_t size, UniqueFd& descriptor);

}  // namespace septet::os
