// The proxy's memory for bytes on their way: fixed buffers for heads, and bodies of any size.
//
// Owned by one Reactor and used by its thread. Freed memory is kept for the next request, so
// nothing is allocated after warm-up; all bodies together stay under a limit. Bodies lie in memory
// of our own or in slots of a region that replicas on this machine read too.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "balance/slot_allocator.h"
#include "os/named_memory.h"
#include "os/sealed_memory.h"

namespace septet::balance {

// One size for all: a head and what came with it. Last freed, first reused: it is still in cache.
class BufferPool {
 public:
  explicit BufferPool(std::size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}
  using Buffer = std::unique_ptr<char[]>;

  std::size_t buffer_bytes() const { return buffer_bytes_; }
  Buffer take();
  void give_back(Buffer buffer) { free_.push_back(std::move(buffer)); }

 private:
  std::size_t buffer_bytes_;
  std::vector<Buffer> free_;
};

// A whole body that outlives the buffer it came in.
class BodyPool;
class Body {
 public:
  Body() = default;
  ~Body() { release(); }
  Body(Body&& other) noexcept;
  Body& operator=(Body&& other) noexcept;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  bool valid() const { return data_ != nullptr; }
  char* data() { return data_; }
  const char* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  void release();

  // Whether it lies in the region; offset() and share() are for those only.
  bool in_slot() const { return in_slot_; }
  const BodyPool& pool() const { return *pool_; }
  std::size_t offset() const { return offset_; }
  // The same slot once more, which is free when both are released.
  Body share() const;

 private:
  friend class BodyPool;
  BodyPool* pool_ = nullptr;
  char* data_ = nullptr;  // the pool's again after release()
  std::size_t capacity_ = 0;
  std::size_t offset_ = 0;
  bool in_slot_ = false;
};

class BodyPool {
 public:
  // How replicas come to the region: by a descriptor that we hand them, or by its name in /dev/shm.
  enum class Region { kSealed, kNamed };

  explicit BodyPool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Where whole requests fill the limit, the first bytes of others may go an eighth over it while
  // they wait, and replies a quarter: a reply is what frees memory again.
  enum class For { kRequest, kBeginning, kReply };
  // Room for so many bytes (rounded up to a power of two); invalid when the limit is reached.
  Body take(std::size_t bytes, For use = For::kRequest);
  // Whether take() could ever succeed.
  bool fits(std::size_t bytes) const;
  // Without slots.
  std::size_t used_bytes() const { return used_bytes_; }

  // Makes half of the limit (of a named one at most kMostNamedBytes) a region for slots, unless the
  // rest would be too small for a body of most_bytes; harmless when there is one. A sealed one
  // takes the place of a named one that is not in use; a name that could not be had is not tried
  // again. Whether there is one of that kind now.
  bool open_region(Region kind, std::size_t most_bytes);
  // Room in the region; invalid when it has none.
  Body take_slot(std::size_t bytes);
  std::size_t region_bytes() const { return slots_ ? slots_->region_bytes() : 0; }
  // Null without a region of that kind.
  const os::SealedMemory* sealed_region() const { return sealed_.get(); }
  const os::NamedMemory* named_region() const { return named_.get(); }
  // Why there is no named region; empty when it was not tried.
  const std::string& name_refused() const { return name_refused_; }
  std::size_t used_slots() const { return slots_ ? slots_->used_slots() : 0; }
  std::size_t used_slot_bytes() const { return slots_ ? slots_->used_bytes() : 0; }

 private:
  friend class Body;
  static constexpr std::size_t kSmallestBits = 14;
  static constexpr std::size_t kMostNamedBytes = std::size_t{64} << 20U;
  static constexpr std::size_t kClasses = 26;
  static std::size_t class_of(std::size_t bytes);
  static std::size_t class_bytes(std::size_t size_class);
  std::size_t limit_for(For use) const;
  bool drop_free(std::size_t bytes, std::size_t limit);
  void take_back(Body& body);
  std::byte* open_memory(Region kind, std::size_t bytes);

  std::size_t limit_bytes_;
  std::size_t used_bytes_ = 0;  // handed out
  std::size_t kept_bytes_ = 0;  // free, for reuse
  std::array<std::vector<std::unique_ptr<char[]>>, kClasses> free_;
  std::shared_ptr<os::SealedMemory> sealed_;
  std::unique_ptr<os::NamedMemory> named_;
  std::string name_refused_;
  std::byte* region_ = nullptr;  // of one of the two
  std::unique_ptr<SlotAllocator> slots_;
};

}  // namespace septet::balance
