// NamedMemory: memory that other programs on this machine open by its name (shm_open), and that we
// write.
//
//   /dev/shm/PREFIX-PID-RANDOM        its descriptor is locked (flock) as long as its creator lives
//
// For programs that a descriptor cannot be handed to (os/sealed_memory.h). All pages are taken at
// once, so that a full /dev/shm shows here and not as SIGBUS later. Whoever runs as the same user
// can open it too, and could shrink it: share it only with programs that are trusted that far.
// Owned by its creator; any thread may use the bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace septet::os {

class NamedMemory {
 public:
  // New memory, zeros. Takes at most a quarter of what /dev/shm has left: kNoCapacity beyond that.
  // Removes what creators that were killed left behind under the same prefix (letters, digits, -).
  static Result<std::unique_ptr<NamedMemory>> create(const std::string& prefix, std::size_t bytes);
  // Gives the pages back, also where others still have it mapped (they then read zeros), and
  // removes the name.
  ~NamedMemory();
  NamedMemory(const NamedMemory&) = delete;
  NamedMemory& operator=(const NamedMemory&) = delete;

  // As shm_open takes it: "/PREFIX-PID-RANDOM". Nobody can guess it.
  const std::string& key() const { return key_; }
  std::size_t size() const { return size_; }
  std::byte* data() { return data_; }

 private:
  NamedMemory(std::string key, UniqueFd fd, std::byte* data, std::size_t size)
      : key_(std::move(key)), fd_(std::move(fd)), data_(data), size_(size) {}

  std::string key_;
  UniqueFd fd_;
  std::byte* data_;
  std::size_t size_;
};

}  // namespace septet::os
