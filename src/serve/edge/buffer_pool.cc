#include "serve/edge/buffer_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace septet::serve {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallest = 4096;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

}  // namespace

struct BufferPool::FreeList {
  std::mutex mutex;
  std::array<std::vector<Memory>, 64> by_size;  // index: log2 of the size
  std::size_t kept = 0;
  std::size_t keep_bytes = 0;

  Memory take(std::size_t size) {
    {
      const std::lock_guard lock(mutex);
      std::vector<Memory>& list = by_size.at(static_cast<std::size_t>(std::countr_zero(size)));
      if (!list.empty()) {
        Memory memory = std::move(list.back());
        list.pop_back();
        kept -= size;
        return memory;
      }
    }
    return Memory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  }

  void give_back(Memory memory, std::size_t size) {
    const std::lock_guard lock(mutex);
    if (kept + size <= keep_bytes) {
      kept += size;
      by_size.at(static_cast<std::size_t>(std::countr_zero(size))).push_back(std::move(memory));
    }
  }
};

BufferPool::BufferPool(std::size_t keep_bytes) : free_(std::make_shared<FreeList>()) {
  free_->keep_bytes = keep_bytes;
}

BufferPool::Buffer BufferPool::take(std::size_t bytes, std::size_t lead) {
  const std::size_t shift = (kAlignment - lead % kAlignment) % kAlignment;
  const std::size_t size = std::bit_ceil(std::max(bytes + shift, kSmallest));
  std::byte* memory = free_->take(size).release();
  if (memory == nullptr) {
    return {};
  }
  const auto give_back = [free = free_, size](const void* raw) {
    free->give_back(Memory(static_cast<std::byte*>(const_cast<void*>(raw))), size);
  };
  std::shared_ptr<const void> owner(static_cast<const void*>(memory), give_back);
  return {memory + shift, size - shift, std::move(owner)};
}

}  // namespace septet::serve
