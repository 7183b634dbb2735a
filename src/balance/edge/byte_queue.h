// ByteQueue: bytes on their way, in memory of the BodyPool.
//
// Owned by one gRPC call. append() at the end, read from the front; what has been read is kept
// until drop_read(), so that it can be read again from the start.
#pragma once

#include <cstring>
#include <string_view>

#include "balance/edge/memory.h"

namespace septet::balance {

class ByteQueue {
 public:
  // Room for so many bytes in all; false when the pool has none.
  bool reserve(BodyPool& pool, std::size_t bytes, BodyPool::For use) {
    if (bytes <= body_.capacity()) {
      return true;
    }
    Body larger = pool.take(bytes, use);
    if (!larger.valid()) {
      return false;
    }
    if (end_ > 0) {
      std::memcpy(larger.data(), body_.data(), end_);
    }
    body_ = std::move(larger);
    return true;
  }
  bool append(BodyPool& pool, std::string_view bytes, BodyPool::For use) {
    if (bytes.empty()) {
      return true;
    }
    if (!reserve(pool, end_ + bytes.size(), use)) {
      return false;
    }
    std::memcpy(body_.data() + end_, bytes.data(), bytes.size());
    end_ += bytes.size();
    return true;
  }
  std::size_t size() const { return end_; }
  // Not read yet.
  std::size_t left() const { return end_ - read_; }
  // All of it, read or not.
  std::string_view all() const { return {body_.data(), end_}; }
  std::size_t read(char* to, std::size_t room) {
    const std::size_t bytes = left() < room ? left() : room;
    if (bytes > 0) {
      std::memcpy(to, body_.data() + read_, bytes);
      read_ += bytes;
    }
    return bytes;
  }
  void read_again() { read_ = 0; }
  // As if so many bytes had been read.
  void read_from(std::size_t at) { read_ = at; }
  void drop_read() {
    if (read_ > 0) {
      std::memmove(body_.data(), body_.data() + read_, left());
      end_ -= read_;
      read_ = 0;
    }
  }
  void release() {
    body_.release();
    read_ = end_ = 0;
  }

 private:
  Body body_;
  std::size_t read_ = 0;
  std::size_t end_ = 0;
};

}  // namespace septet::balance
