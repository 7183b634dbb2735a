// RequestWishes: what a client's fields say about a request, over HTTP/1.1 and gRPC alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace septet::balance {

struct RequestWishes {
  static constexpr std::uint32_t kDefaultPriority = 128;
  std::uint32_t priority = kDefaultPriority;  // 1 is the most urgent
  std::string_view tenant;
  Duration timeout{};  // zero: none is named

  bool has_deadline() const { return timeout > Duration::zero(); }
  // Septet-Timeout-Ms, Septet-Priority (1..255, 1 most urgent), Septet-Tenant; others are ignored,
  // and so are values that make no sense.
  void read_field(std::string_view name, std::string_view value);
};

}  // namespace septet::balance
