// ResponseCache: answers of models with response_cache, kept for the same request again.
//
// Any thread may call it. Entries are named by the SHA-256 of model, version, inputs and outputs
// asked for; the least recently used go first when the limit of bytes is reached.
#pragma once

#include <array>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "inference/tensor.h"

namespace septet::serve {

class ResponseCache {
 public:
  using Key = std::array<unsigned char, 32>;

  // limit_bytes 0 = nothing is kept.
  explicit ResponseCache(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  bool is_on() const { return limit_bytes_ > 0; }
  static Key key_of(const inference::InferRequest& request, const std::string& version);
  std::optional<inference::InferResponse> find(const Key& key);
  void insert(const Key& key, const inference::InferResponse& response);

 private:
  struct Entry {
    Key key{};
    inference::InferResponse response{};
    std::size_t bytes = 0;
  };

  std::size_t limit_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::map<Key, std::list<Entry>::iterator> by_key_;
  std::size_t bytes_ = 0;
};

}  // namespace septet::serve
