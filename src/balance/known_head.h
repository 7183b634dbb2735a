// KnownHead: the head that a connection had last, so that the same one is not taken apart again.
//
// A client sends the same head with every request of a kind, and a replica with its replies: what
// is the same byte for byte means the same. Owned by one connection, used by its thread.
#pragma once

#include <string>
#include <string_view>

#include "inference/http1.h"

namespace septet::balance {

class KnownHead {
 public:
  // Whether the bytes begin with it. A parser must not have seen any of them yet.
  bool begins(std::string_view bytes) const {
    return !text_.empty() && bytes.substr(0, text_.size()) == text_;
  }
  std::size_t size() const { return text_.size(); }
  // Takes the bytes of a whole head for what comes; the views of what was parsed from them point
  // into the copy afterwards. A large one is not taken, only the one before forgotten.
  void keep(std::string_view bytes, inference::HttpHead& head);
  void forget() { text_.clear(); }

 private:
  std::string text_;
};

}  // namespace septet::balance
