// PaddedBody: an answer's bytes with the room behind them that the JSON parser reads.
//
// A copy, shared by every tensor that is read in place.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "inference/v2_codec.h"

namespace septet::measure {

class PaddedBody {
 public:
  PaddedBody(std::string_view body, std::optional<std::uint64_t> json_bytes)
      : bytes_(std::make_shared<std::vector<std::byte>>(body.size() + inference::kBodyPadding)),
        size_(body.size()),
        json_bytes_(std::min<std::uint64_t>(json_bytes.value_or(size_), size_)) {
    std::memcpy(bytes_->data(), body.data(), size_);
  }

  inference::V2Body view() const { return {std::span(*bytes_).first(size_), json_bytes_, bytes_}; }

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
  std::size_t size_;
  std::size_t json_bytes_;
};

}  // namespace septet::measure
