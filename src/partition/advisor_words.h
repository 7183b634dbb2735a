// What the advisor says about an option: its plan, its strongest reasons, its warnings; and what a
// reason code means.
//
// Pure; used by the advisor only (explain_code is declared in advisor.h).
#pragma once

#include <string>
#include <vector>

#include "partition/advisor_model.h"

namespace septet::partition {

SharingPlan plan_for(const Case& the_case, Technique technique);
std::vector<std::string> reasons_for(const Case& the_case, const Option& option,
                                     const Score& score);
std::vector<std::string> warnings_for(const Case& the_case, const Option& option);

}  // namespace septet::partition
