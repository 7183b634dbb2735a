// The report's section on partition sizes: which profile for which model. Pure.
#pragma once

#include <string>

#include "measure/profile_comparison.h"
#include "measure/report.h"

namespace septet::measure {

// HTML: the answer in words, a chart and a table for every model; empty without two profiles of one
// model to compare.
std::string profile_section(const ReportInput& input);

// The answer in words as lines for a terminal; empty likewise.
std::string profile_text(const ReportInput& input, int columns);

// The question that the input asks.
ProfileQuestion profile_question(const ReportInput& input);

}  // namespace septet::measure
