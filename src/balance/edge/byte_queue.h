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
    if (lead_ + bytes <= body_.capacity()) {
      return true;
    }
    Body larger = pool.take(bytes, use);
    if (!larger.valid()) {
      return false;
    }
    if (end_ > 0) {
      std::memcpy(larger.data(), begin(), end_);
    }
    body_ = std::move(larger);
    lead_ = 0;
    return true;
  }
  // The same in a slot, `lead` bytes behind its beginning, while there is nothing in the queue;
  // what has no room there goes elsewhere.
  void reserve_slot(BodyPool& pool, std::size_t bytes, std::size_t lead) {
    Body slot = pool.take_slot(lead + bytes);
    if (slot.valid()) {
      body_ = std::move(slot);
      lead_ = lead;
    }
  }
  // Where it lies, and how far behind the beginning of that.
  const Body& memory() const { return body_; }
  std::size_t lead() const { return lead_; }
  bool append(BodyPool& pool, std::string_view bytes, BodyPool::For use) {
    if (bytes.empty()) {
      return true;
    }
    if (!reserve(pool, end_ + bytes.size(), use)) {
      return false;
    }
    std::memcpy(begin() + end_, bytes.data(), bytes.size());
    end_ += bytes.size();
    return true;
  }
  std::size_t size() const { return end_; }
  // Not read yet.
  std::size_t left() const { return end_ - read_; }
  // All of it, read or not.
  std::string_view all() const { return {body_.data() + lead_, end_}; }
  std::size_t read(char* to, std::size_t room) {
    const std::size_t bytes = left() < room ? left() : room;
    if (bytes > 0) {
      std::memcpy(to, begin() + read_, bytes);
      read_ += bytes;
    }
    return bytes;
  }
  void read_again() { read_ = 0; }
  // As if so many bytes had been read.
  void read_from(std::size_t at) { read_ = at; }
  void drop_read() {
    if (read_ > 0) {
      std::memmove(begin(), begin() + read_, left());
      end_ -= read_;
      read_ = 0;
    }
  }
  void release() {
    body_.release();
    read_ = end_ = lead_ = 0;
  }

 private:
  char* begin() { return body_.data() + lead_; }

  Body body_;
  std::size_t lead_ = 0;
  std::size_t read_ = 0;
  std::size_t end_ = 0;
};

}  // namespace septet::balance
