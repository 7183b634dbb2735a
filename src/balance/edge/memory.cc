#include "balance/edge/memory.h"

#include <bit>
#include <utility>

namespace septet::balance {

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
      data_(std::move(other.data_)),
      size_class_(other.size_class_) {}

Body& Body::operator=(Body&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::move(other.data_);
    size_class_ = other.size_class_;
  }
  return *this;
}

std::size_t Body::capacity() const { return valid() ? BodyPool::class_bytes(size_class_) : 0; }

void Body::release() {
  if (data_ == nullptr) {
    return;
  }
  pool_->used_bytes_ -= BodyPool::class_bytes(size_class_);
  pool_->kept_bytes_ += BodyPool::class_bytes(size_class_);
  pool_->free_[size_class_].push_back(std::move(data_));
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
    body.data_ = std::move(free_[size_class].back());
    free_[size_class].pop_back();
    kept_bytes_ -= size;
  } else if (used_bytes_ + kept_bytes_ + size <= limit || drop_free(size, limit)) {
    body.data_ = std::make_unique_for_overwrite<char[]>(size);
  } else {
    return body;
  }
  body.pool_ = this;
  body.size_class_ = size_class;
  used_bytes_ += size;
  return body;
}

}  // namespace septet::balance
