#include "partition/advisor.h"

#include <algorithm>

#include "base/check.h"
#include "partition/advisor_model.h"
#include "partition/advisor_words.h"

namespace septet::partition {

const char* to_string(SliceLength length) {
  switch (length) {
    case SliceLength::kDefault:
      return "default";
    case SliceLength::kShort:
      return "short";
    case SliceLength::kMedium:
      return "medium";
    case SliceLength::kLong:
      return "long";
  }
  return "default";
}

Advice recommend(const Node& node, const Demand& demand) {
  CHECK(!demand.jobs.empty() && node.multiprocessors > 0);
  const Case the_case(node, demand);
  Advice advice;
  double best_utilisation = 0;
  for (const Technique technique : kTechniques) {
    const Effect effect = effect_of(the_case, technique);
    std::vector<std::string> codes = failed_gates(the_case, technique, effect.latency_factor);
    if (!codes.empty()) {
      advice.rejections.push_back({technique, std::move(codes)});
      continue;
    }
    best_utilisation = std::max(best_utilisation, effect.utilisation);
    Option option;
    option.technique = technique;
    option.verdict = verdict(demand.kind, technique);
    option.latency_factor = effect.latency_factor;
    option.utilisation = effect.utilisation;
    advice.options.push_back(std::move(option));
  }
  for (Option& option : advice.options) {
    const Effect effect{option.latency_factor, option.utilisation};
    const Score score = score_of(the_case, option.technique, effect, best_utilisation);
    option.score = score.total();
    option.plan = plan_for(the_case, option.technique);
    option.reasons = reasons_for(the_case, option, score);
    option.warnings = warnings_for(the_case, option);
  }
  // Stable: equal scores stay in the order of the enum.
  std::stable_sort(advice.options.begin(), advice.options.end(),
                   [](const Option& a, const Option& b) { return a.score > b.score; });
  return advice;
}

}  // namespace septet::partition
