// What a technique does to latency and to the use of the chip, and how that is weighed.
//
// Pure; used by the advisor only.
#pragma once

#include <array>

#include "partition/advisor_gates.h"

namespace septet::partition {

struct Effect {
  double latency_factor = 1;  // against one job alone
  double utilisation = 0;     // share of the chip that does useful work
};

Effect effect_of(const Case& the_case, Technique technique);

// The four parts of a score, each already weighted; they add up to at most 1.
struct Score {
  double isolation = 0;
  double utilisation = 0;
  double latency = 0;
  double cost = 0;
  double discount = 1;  // conditional verdict, waiting for the whole GPU

  double total() const { return 100 * (isolation + utilisation + latency + cost) * discount; }
};

// best_utilisation: the largest of all techniques that passed their gates.
Score score_of(const Case& the_case, Technique technique, Effect effect, double best_utilisation);

}  // namespace septet::partition
