#include "balance/edge/memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "balance/shared_request.h"
#include "base/check.h"

namespace septet::balance {

namespace {

constexpr std::size_t kSlotUnitBytes = 64 * 1024;

}  // namespace

BufferPool::Buffer BufferPool::take() {
  if (free_.empty()) {
    return std::make_unique_for_overwrite<char[]>(buffer_bytes_);
  }
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

Body::Body(Body&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      offset_(other.offset_),
      in_slot_(other.in_slot_) {}

Body& Body::operator=(Body&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
    offset_ = other.offset_;
    in_slot_ = other.in_slot_;
  }
  return *this;
}

void Body::release() {
  if (data_ != nullptr) {
    pool_->take_back(*this);
    data_ = nullptr;
    capacity_ = 0;
  }
}

Body Body::share() const {
  CHECK(valid() && in_slot_);
  pool_->slots_->share(offset_);
  Body same;
  same.pool_ = pool_;
  same.data_ = data_;
  same.capacity_ = capacity_;
  same.offset_ = offset_;
  same.in_slot_ = true;
  return same;
}

void BodyPool::take_back(Body& body) {
  if (body.in_slot_) {
    slots_->give_back(body.offset_);
    return;
  }
  used_bytes_ -= body.capacity_;
  kept_bytes_ += body.capacity_;
  free_[class_of(body.capacity_)].emplace_back(body.data_);
}

std::size_t BodyPool::class_of(std::size_t bytes) {
  const auto bits = static_cast<std::size_t>(std::bit_width(bytes <= 1 ? 0 : bytes - 1));
  return bits <= kSmallestBits ? 0 : bits - kSmallestBits;
}

std::size_t BodyPool::class_bytes(std::size_t size_class) {
  return std::size_t{1} << (size_class + kSmallestBits);
}

bool BodyPool::fits(std::size_t bytes) const {
  const std::size_t size_class = class_of(bytes);
  return size_class < kClasses && class_bytes(size_class) <= limit_bytes_;
}

// Gives kept memory of other sizes back to the system until so much may be had.
bool BodyPool::drop_free(std::size_t bytes, std::size_t limit) {
  for (std::size_t i = kClasses; i-- > 0 && used_bytes_ + kept_bytes_ + bytes > limit;) {
    while (!free_[i].empty() && used_bytes_ + kept_bytes_ + bytes > limit) {
      free_[i].pop_back();
      kept_bytes_ -= class_bytes(i);
    }
  }
  return used_bytes_ + kept_bytes_ + bytes <= limit;
}

std::size_t BodyPool::limit_for(For use) const {
  switch (use) {
    case For::kRequest:
      break;
    case For::kBeginning:
      return limit_bytes_ + limit_bytes_ / 8;
    case For::kReply:
      return limit_bytes_ + limit_bytes_ / 4;
  }
  return limit_bytes_;
}

Body BodyPool::take(std::size_t bytes, For use) {
  const std::size_t limit = limit_for(use);
  Body body;
  if (!fits(bytes)) {
    return body;
  }
  const std::size_t size_class = class_of(bytes);
  const std::size_t size = class_bytes(size_class);
  if (!free_[size_class].empty()) {
    body.data_ = free_[size_class].back().release();
    free_[size_class].pop_back();
    kept_bytes_ -= size;
  } else if (used_bytes_ + kept_bytes_ + size <= limit || drop_free(size, limit)) {
    body.data_ = std::make_unique_for_overwrite<char[]>(size).release();
  } else {
    return body;
  }
  body.pool_ = this;
  body.capacity_ = size;
  used_bytes_ += size;
  return body;
}

bool BodyPool::open_region(Region kind, std::size_t most_bytes) {
  if (sealed_ || named_) {
    const bool has_it = kind == Region::kSealed ? sealed_ != nullptr : named_ != nullptr;
    if (has_it || kind == Region::kNamed || used_slots() > 0) {
      return has_it;
    }
    limit_bytes_ += region_bytes();
    slots_.reset();
    named_.reset();
  }
  const std::size_t half = std::bit_floor(limit_bytes_ / 2);
  const std::size_t bytes = kind == Region::kNamed ? std::min(half, kMostNamedBytes) : half;
  if (bytes < kSlotUnitBytes || class_bytes(class_of(most_bytes)) > limit_bytes_ - bytes) {
    return false;
  }
  region_ = open_memory(kind, bytes);
  if (region_ == nullptr) {
    return false;
  }
  slots_ = std::make_unique<SlotAllocator>(bytes, kSlotUnitBytes);
  limit_bytes_ -= bytes;
  drop_free(0, limit_bytes_);
  return true;
}

// Null when it cannot be had.
std::byte* BodyPool::open_memory(Region kind, std::size_t bytes) {
  if (kind == Region::kSealed) {
    auto memory = os::SealedMemory::create(kRegionPrefix, bytes);
    if (memory.ok()) {
      sealed_ = *std::move(memory);
    }
    return sealed_ ? sealed_->data() : nullptr;
  }
  if (name_refused_.empty()) {
    auto memory = os::NamedMemory::create(kRegionPrefix, bytes);
    if (memory.ok()) {
      named_ = *std::move(memory);
    } else {
      name_refused_ = memory.error().text();
    }
  }
  return named_ ? named_->data() : nullptr;
}

Body BodyPool::take_slot(std::size_t bytes) {
  Body body;
  const auto slot = slots_ == nullptr ? std::nullopt : slots_->take(bytes);
  if (slot) {
    body.pool_ = this;
    body.data_ = reinterpret_cast<char*>(region_) + slot->offset;
    body.capacity_ = slot->bytes;
    body.offset_ = slot->offset;
    body.in_slot_ = true;
  }
  return body;
}

}  // namespace septet::balance
