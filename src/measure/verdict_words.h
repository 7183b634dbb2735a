// The words of the verdict: counts, figures, changes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "measure/results.h"
#include "measure/verdict.h"

namespace septet::measure {

// "1 replica", "7 replicas".
std::string count_of(int count, std::string_view one);
// "29.2 ± 0.6".
std::string rate_text(const ResultRow& row);
// "2.1 times as much", "18 % more", "18 % less".
std::string change_text(double ratio, std::string_view more, std::string_view less);
// "7.2 times shorter", "18 % longer".
std::string latency_change(const Comparison& change);

}  // namespace septet::measure
