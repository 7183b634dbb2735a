// GuardedMapping: a client's shared memory object in our address space, safe against its
// truncation.
//
// A client may shrink its object after it was mapped; touching a page beyond the new end then
// raises SIGBUS. The handler installed here puts zero pages over the whole mapping and marks it
// broken, so the access goes on and the request fails with a message instead of the server.
// Movable nowhere; any thread may read and write the bytes. At most kMaxMappings exist at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace septet::serve {

class GuardedMapping {
 public:
  static constexpr std::size_t kMaxMappings = 1024;

  // Maps byte_size bytes from offset of the POSIX shared memory object `key`, readable and
  // writable. kUsage when the key is no name of an object, kNotFound when there is none,
  // kUsage when the range passes its end, kNoCapacity when too many are mapped.
  static Result<std::unique_ptr<GuardedMapping>> open(const std::string& key, std::uint64_t offset,
                                                      std::uint64_t byte_size);
  ~GuardedMapping();
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // Whether the object shrank under us: what was read since is zeros.
  bool is_broken() const;

 private:
  GuardedMapping(std::size_t slot, void* base, std::size_t mapped, std::span<std::byte> bytes);

  std::size_t slot_;
  void* base_;
  std::size_t mapped_;
  std::span<std::byte> bytes_;
};

}  // namespace septet::serve
