// Prng: the one source of randomness, always handed in and always seeded.
//
// xoshiro256** (Blackman, Vigna: "Scrambled linear pseudorandom number generators", 2021), seeded
// through SplitMix64. The same seed gives the same sequence on every machine and compiler, which
// the standard library's distributions do not promise. Not for secrets.
#pragma once

#include <array>
#include <cstdint>

namespace septet {

class Prng {
 public:
  explicit Prng(std::uint64_t seed);

  std::uint64_t next();
  // Uniform in [0, 1).
  double uniform();
  // Uniform in [0, bound); bound > 0. No modulo bias.
  std::uint64_t below(std::uint64_t bound);
  // Exponential with mean 1.
  double exponential();
  // True with the given probability.
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace septet
