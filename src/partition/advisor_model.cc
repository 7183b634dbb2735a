#include "partition/advisor_model.h"

#include <algorithm>

namespace septet::partition {

namespace {

// A green context or static partition shares hardware queues and bandwidth with its neighbours.
constexpr double kSubsetFactor = 1.1;
// An interposing library costs launches and throttles on a feedback loop.
constexpr double kShimFactor = 1.2;
// One tenant at a time, switched by moving memory or by people.
constexpr double kWholeTurnFactor = 10;
constexpr double kConditionalDiscount = 0.8;

struct Weights {
  double isolation;
  double utilisation;
  double latency;
  double cost;
  double queue_discount;  // of the whole GPU when more than one job wants it
};

// In the order of WorkKind.
constexpr std::array<Weights, kWorkKinds.size()> kWeights = {{
    {.35, .10, .45, .10, .3},
    {.35, .30, .15, .20, .4},
    {.20, .30, .35, .15, .8},
    {.10, .55, .05, .30, .6},
}};

double mean_multiprocessors(const Case& the_case) {
  double sum = 0;
  for (const Job& job : the_case.demand.jobs) {
    sum += job.multiprocessors;
  }
  return sum / the_case.count();
}

double duty_sum(const Case& the_case) {
  double sum = 0;
  for (const Job& job : the_case.demand.jobs) {
    sum += job.duty;
  }
  return sum;
}

Effect mig_effect(const Case& the_case) {
  Effect effect;
  const auto& jobs = the_case.demand.jobs;
  for (std::size_t i = 0; i < jobs.size() && i < the_case.mig.per_job.size(); ++i) {
    const double have = the_case.mig.per_job[i]->engines.multiprocessors;
    const double want = jobs[i].multiprocessors;
    effect.latency_factor = std::max(effect.latency_factor, want / have);
    effect.utilisation += std::min(want, have) * jobs[i].duty / the_case.node.multiprocessors;
  }
  return effect;
}

Effect hybrid_effect(const Case& the_case) {
  const double used = std::min(1.0, the_case.load);
  if (the_case.hybrid.profile == nullptr) {
    return {1, used};
  }
  double busy = 0;
  for (const Job& job : the_case.demand.jobs) {
    busy += job.multiprocessors * job.duty;
  }
  const double each = the_case.hybrid.tenants_each;
  const double inside =
      each * (busy / the_case.count()) / the_case.hybrid.profile->engines.multiprocessors;
  const double active = std::max(1.0, each * duty_sum(the_case) / the_case.count());
  const double per_tenant = the_case.node.latency.mps_per_tenant;
  return {std::max(1.0, inside) * (1 + per_tenant * (active - 1)), used};
}

double time_slice_utilisation(const Case& the_case) {
  return std::min(1.0, duty_sum(the_case)) * mean_multiprocessors(the_case) /
         the_case.node.multiprocessors;
}

double time_slice_factor(const Case& the_case) {
  const double active = the_case.active_tenants;
  return active <= 1 ? 1 : the_case.node.latency.time_slice_factor * active;
}

double isolation_score(Technique technique) {
  switch (technique) {
    case Technique::kMig:
    case Technique::kVgpuMig:
    case Technique::kExclusive:
      return 1;
    case Technique::kVgpu:
      return .9;
    case Technique::kMigMps:
      return .7;
    case Technique::kMpsV3:
      return .6;
    case Technique::kMpsStatic:
      return .5;
    case Technique::kMps:
      return .4;
    case Technique::kTimeSlice:
    case Technique::kShim:
    case Technique::kSwap:
      return .3;
    case Technique::kGreenContexts:
      return .05;
    case Technique::kStreams:
      return 0;
  }
  return 0;
}

double cost_of(Technique technique, MigAvailability mig) {
  const double mode_change = mig == MigAvailability::kOn ? 0 : .5;
  switch (technique) {
    case Technique::kMig:
      return mode_change;
    case Technique::kMigMps:
      return mode_change + .1;
    case Technique::kVgpu:
      return .6;
    case Technique::kVgpuMig:
      return .7;
    case Technique::kMpsV3:
      return .2;
    case Technique::kMpsStatic:
      return .15;
    case Technique::kMps:
      return .1;
    case Technique::kTimeSlice:
      return .05;
    case Technique::kShim:
    case Technique::kStreams:
      return .3;
    case Technique::kGreenContexts:
      return .4;
    case Technique::kSwap:
      return .5;
    case Technique::kExclusive:
      return 0;
  }
  return 0;
}

}  // namespace

Effect effect_of(const Case& the_case, Technique technique) {
  const LatencyModel& model = the_case.node.latency;
  const double active = the_case.active_tenants;
  const double overload = std::max(1.0, the_case.load);
  const double used = std::min(1.0, the_case.load);
  const double in_turns = time_slice_utilisation(the_case);
  switch (technique) {
    case Technique::kMig:
    case Technique::kVgpuMig:
      return mig_effect(the_case);
    case Technique::kMigMps:
      return hybrid_effect(the_case);
    case Technique::kMpsV3:
    case Technique::kMpsStatic:
    case Technique::kGreenContexts:
      return {kSubsetFactor * overload, used};
    case Technique::kMps:
      return {overload * (1 + model.mps_per_tenant * (active - 1)), used};
    case Technique::kStreams:
      return {overload * (1 + model.streams_per_tenant * (active - 1)), used};
    case Technique::kTimeSlice:
      return {time_slice_factor(the_case), in_turns};
    case Technique::kShim:
      return {kShimFactor * time_slice_factor(the_case), .9 * in_turns};
    case Technique::kVgpu:
      return {the_case.count(), in_turns};
    case Technique::kSwap:
      return {kWholeTurnFactor * active, .9 * in_turns};
    case Technique::kExclusive:
      return {the_case.demand.jobs.size() == 1 ? 1 : kWholeTurnFactor * active, in_turns};
  }
  return {};
}

Score score_of(const Case& the_case, Technique technique, Effect effect, double best_utilisation) {
  const Weights& weights = kWeights[static_cast<std::size_t>(the_case.demand.kind)];
  Score score;
  score.isolation = weights.isolation * isolation_score(technique);
  score.utilisation =
      best_utilisation > 0 ? weights.utilisation * effect.utilisation / best_utilisation : 0;
  score.latency = weights.latency * std::min(1.0, 1 / effect.latency_factor);
  score.cost = weights.cost * (1 - cost_of(technique, the_case.node.mig));
  if (verdict(the_case.demand.kind, technique).fit == Fit::kConditional) {
    score.discount *= kConditionalDiscount;
  }
  if (technique == Technique::kExclusive && the_case.demand.jobs.size() > 1) {
    score.discount *= weights.queue_discount;
  }
  return score;
}

}  // namespace septet::partition
