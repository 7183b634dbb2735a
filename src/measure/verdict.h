// The verdict: what an experiment's numbers say, in words, and no more than they allow.
//
// Two figures are called different only when the difference exceeds what their uncertainties
// together explain. A row's uncertainty is its 95 % confidence interval; a row without one counts
// as uncertain by 10 % (what perf_analyzer's stability rule lets pass), an unstable row by 30 % at
// least. Pure.
#pragma once

#include <string>
#include <vector>

#include "measure/experiment.h"

namespace septet::measure {

enum class FindingKind {
  kDifference,    // the numbers show it
  kNoDifference,  // the numbers do not tell the two apart
  kCaution,       // what the reader must know before believing the rest
};

struct Finding {
  FindingKind kind = FindingKind::kDifference;
  std::string text;  // one or two sentences
};

// In the order in which a reader wants them: scaling, latency, partitioned against undivided,
// cautions. Empty without rows.
std::vector<Finding> draw_verdict(const std::vector<ResultRow>& rows);

// How two figures relate.
enum class Order { kLower, kUnknown, kHigher };
struct Comparison {
  double ratio = 1;               // second / first
  double uncertainty = 0;         // of the ratio, relative
  Order order = Order::kUnknown;  // of the second against the first
};
Comparison compare_throughput(const ResultRow& first, const ResultRow& second);
Comparison compare_p90(const ResultRow& first, const ResultRow& second);

}  // namespace septet::measure
