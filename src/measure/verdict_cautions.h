// What a reader must know before believing the rest of the verdict. Pure.
#pragma once

#include <vector>

#include "measure/experiment.h"
#include "measure/verdict.h"

namespace septet::measure {

// Too little load, failures, unstable levels, missing intervals, simulation; in that order.
std::vector<Finding> draw_cautions(const std::vector<ConfigurationRows>& groups,
                                   const std::vector<ResultRow>& rows);

}  // namespace septet::measure
