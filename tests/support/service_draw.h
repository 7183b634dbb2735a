// The service times of the theory benches, by the names that their command lines give them.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/prng.h"

namespace septet::test {

// One service time, in units of the mean.
using ServiceDraw = std::function<double(Prng& prng)>;

// "deterministic" or "exponential"; nothing for other words.
inline std::optional<ServiceDraw> service_draw(std::string_view kind) {
  if (kind == "deterministic") {
    return ServiceDraw([](Prng& /*prng*/) { return 1.0; });
  }
  if (kind == "exponential") {
    return ServiceDraw([](Prng& prng) { return prng.exponential(); });
  }
  return std::nullopt;
}

}  // namespace septet::test
