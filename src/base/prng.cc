#include "base/prng.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace septet {

namespace {

std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace

Prng::Prng(std::uint64_t seed) : state_() {
  for (std::uint64_t& word : state_) {
    word = split_mix(seed);
  }
}

std::uint64_t Prng::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Prng::uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

std::uint64_t Prng::below(std::uint64_t bound) {
  CHECK(bound > 0);
  const std::uint64_t reject_below = (0 - bound) % bound;
  std::uint64_t value = next();
  while (value < reject_below) {
    value = next();
  }
  return value % bound;
}

double Prng::exponential() { return -std::log1p(-uniform()); }

}  // namespace septet
