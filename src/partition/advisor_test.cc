#include "partition/advisor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace septet::partition {
namespace {

gpu::GpuInstanceProfile profile(const char* name, unsigned slices, unsigned multiprocessors,
                                std::int64_t memory_mib, std::vector<unsigned> starts,
                                unsigned size) {
  gpu::GpuInstanceProfile result;
  result.name = name;
  result.slices = slices;
  result.max_instances = static_cast<unsigned>(starts.size());
  result.memory_mib = memory_mib;
  result.engines.multiprocessors = multiprocessors;
  for (const unsigned start : starts) {
    result.placements.push_back({start, size});
  }
  return result;
}

Node base_node() {
  Node node;
  node.driver_major = 580;
  node.cuda_version = 13000;
  node.has_mps = true;
  return node;
}

Node a100() {
  Node node = base_node();
  node.compute_capability = 80;
  node.multiprocessors = 108;
  node.memory_mib = 40960;
  node.chunk_multiprocessors = 4;
  node.profiles = {profile("1g.5gb", 1, 14, 4864, {0, 1, 2, 3, 4, 5, 6}, 1),
                   profile("1g.10gb", 1, 14, 9856, {0, 2, 4, 6}, 2),
                   profile("2g.10gb", 2, 28, 9856, {0, 2, 4}, 2),
                   profile("3g.20gb", 3, 42, 19968, {0, 4}, 4),
                   profile("4g.20gb", 4, 56, 19968, {0}, 4),
                   profile("7g.40gb", 7, 98, 40192, {0}, 8)};
  return node;
}

Node h200() {
  Node node = base_node();
  node.compute_capability = 90;
  node.multiprocessors = 132;
  node.memory_mib = 143771;
  node.profiles = {profile("1g.18gb", 1, 16, 16384, {0, 1, 2, 3, 4, 5, 6}, 1),
                   profile("1g.35gb", 1, 26, 33280, {0, 2, 4, 6}, 2),
                   profile("2g.35gb", 2, 32, 33280, {0, 2, 4}, 2),
                   profile("3g.71gb", 3, 60, 71424, {0, 4}, 4),
                   profile("4g.71gb", 4, 64, 71424, {0}, 4),
                   profile("7g.141gb", 7, 132, 143360, {0}, 8)};
  return node;
}

Node t4() {
  Node node = base_node();
  node.compute_capability = 75;
  node.multiprocessors = 40;
  node.memory_mib = 15360;
  return node;
}

Node with_mig(Node node, MigAvailability mig) {
  node.mig = mig;
  return node;
}

Demand demand(WorkKind kind, unsigned count, Job job, Trust trust = Trust::kTeam) {
  Demand result;
  result.kind = kind;
  result.jobs.assign(count, job);
  result.trust = trust;
  return result;
}

Demand with_target(Demand wanted, double target_p99_ms, double alone_ms) {
  wanted.target_p99_ms = target_p99_ms;
  wanted.alone_ms = alone_ms;
  return wanted;
}

// "mps 54.9, ts 44.3": every option in order.
std::string options_text(const Advice& advice) {
  std::string text;
  for (const Option& option : advice.options) {
    text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", to_string(option.technique),
                        option.score);
  }
  return text;
}

std::vector<std::string> codes_of(const Advice& advice, Technique technique) {
  for (const Rejection& rejection : advice.rejections) {
    if (rejection.technique == technique) {
      return rejection.codes;
    }
  }
  return {};
}

bool rejected_for(const Advice& advice, Technique technique, const char* code) {
  const auto codes = codes_of(advice, technique);
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

using Codes = std::vector<std::string>;
const Job kSmallModel{1200, 16, .9};

TEST(Advisor, Golden1LatencyTeamOnALockedH200) {
  const Advice advice =
      recommend(h200(), with_target(demand(WorkKind::kLatency, 7, kSmallModel), 20, 6.5));

  EXPECT_EQ(options_text(advice), "mps 54.9");
  EXPECT_EQ(codes_of(advice, Technique::kMig), Codes{"mig.mode_locked"});
  EXPECT_EQ(codes_of(advice, Technique::kMpsStatic), Codes{"mps_static.driver"});
  EXPECT_EQ(codes_of(advice, Technique::kTimeSlice), (Codes{"kind.no", "lat.slice", "lat.miss"}));
  EXPECT_EQ(codes_of(advice, Technique::kExclusive), Codes{"lat.miss"});
}

TEST(Advisor, Golden2LatencyTeamMayEnableMig) {
  const Advice advice = recommend(with_mig(h200(), MigAvailability::kChangeable),
                                  with_target(demand(WorkKind::kLatency, 7, kSmallModel), 20, 6.5));

  EXPECT_EQ(options_text(advice), "mig 95.0, mps 54.9");
  ASSERT_EQ(advice.options[0].plan.instances.size(), 7U);
  for (const PlannedInstance& instance : advice.options[0].plan.instances) {
    EXPECT_EQ(instance.profile, "1g.18gb");
  }
}

TEST(Advisor, Golden3InteractiveTeamOnAMigA100) {
  const Advice advice = recommend(with_mig(a100(), MigAvailability::kOn),
                                  demand(WorkKind::kInteractive, 7, {4000, 14, .15}));

  EXPECT_EQ(options_text(advice), "mig 100.0, exclusive 34.0");
  EXPECT_EQ(advice.options[0].plan.text,
            "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6");
  EXPECT_TRUE(rejected_for(advice, Technique::kMps, "mps.mig_on"));
  EXPECT_TRUE(rejected_for(advice, Technique::kTimeSlice, "ts.mig_on"));
}

TEST(Advisor, Golden4TenNotebooksShareInstancesByMps) {
  const Advice advice = recommend(with_mig(a100(), MigAvailability::kChangeable),
                                  demand(WorkKind::kInteractive, 10, {2500, 20, .15}));

  EXPECT_EQ(options_text(advice), "mig_mps 62.0, mps 61.3, time_slice 44.3, exclusive 30.4");
  const SharingPlan& plan = advice.options[0].plan;
  ASSERT_EQ(plan.instances.size(), 4U);
  EXPECT_EQ(plan.instances[0], (PlannedInstance{"1g.10gb", {0, 2}, 3}));
  EXPECT_EQ(plan.instances[3].tenants, 1U);
}

TEST(Advisor, Golden5InteractiveTeamOnAT4) {
  const Advice advice = recommend(t4(), demand(WorkKind::kInteractive, 3, {4000, 20, .2}));

  EXPECT_EQ(options_text(advice), "mps 61.6, time_slice 59.6, exclusive 34.6");
}

TEST(Advisor, Golden6TwoTrainings) {
  const Advice advice = recommend(with_mig(h200(), MigAvailability::kChangeable),
                                  demand(WorkKind::kPerformance, 2, {60000, 60, 1}));

  EXPECT_EQ(options_text(advice), "mig 92.5, mps 67.9, exclusive 41.4");
  EXPECT_EQ(advice.options[0].plan.text, "3g.71gb@0 3g.71gb@4");
}

TEST(Advisor, Golden7OneTrainingThatNeedsAll) {
  const Advice advice =
      recommend(with_mig(h200(), MigAvailability::kChangeable),
                demand(WorkKind::kPerformance, 1, {120000, 132, 1}, Trust::kStrangers));

  EXPECT_EQ(options_text(advice), "exclusive 100.0, mig 92.5");
  EXPECT_EQ(advice.options[1].plan.text, "7g.141gb@0");
}

TEST(Advisor, Golden8LowPriorityTeam) {
  const Advice advice = recommend(h200(), demand(WorkKind::kLow, 5, {8000, 20, .3}));

  EXPECT_EQ(options_text(advice), "mps 90.9, time_slice 70.1, exclusive 46.2");
}

TEST(Advisor, Golden9StrangersWithoutMigQueue) {
  const Advice advice =
      recommend(h200(), demand(WorkKind::kInteractive, 4, {16000, 20, .2}, Trust::kStrangers));

  EXPECT_EQ(options_text(advice), "exclusive 34.6");
}

TEST(Advisor, Golden10ModelsOfOneProcess) {
  const Advice advice = recommend(
      h200(), with_target(demand(WorkKind::kLatency, 7, kSmallModel, Trust::kOneProcess), 20, 1.8));

  EXPECT_EQ(options_text(advice), "mps 54.9, green 46.9, streams 34.3");
}

TEST(Advisor, Golden11MachinesOfStrangers) {
  Node node = with_mig(a100(), MigAvailability::kChangeable);
  node.has_vgpu_host = true;
  Demand wanted =
      with_target(demand(WorkKind::kLatency, 4, {4000, 14, .5}, Trust::kStrangers), 50, 5);
  wanted.needs_vm = true;

  const Advice advice = recommend(node, wanted);

  EXPECT_EQ(options_text(advice), "vgpu_mig 93.0");
  EXPECT_EQ(codes_of(advice, Technique::kVgpu), Codes{"vgpu.need_mig_backed"});
}

TEST(Advisor, Golden12NewDriverWithMemoryControl) {
  Node node = h200();
  node.driver_major = 615;
  node.has_dmem = true;

  const Advice advice = recommend(node, demand(WorkKind::kInteractive, 10, {10000, 20, .2}));

  EXPECT_EQ(options_text(advice), "mps_v3 80.6, mps 61.0, time_slice 39.1, exclusive 28.3");
}

TEST(Advisor, Golden13FiftyRunnersAreTooManyClients) {
  const Advice advice = recommend(h200(), demand(WorkKind::kLow, 50, {1000, 4, .1}));

  EXPECT_EQ(options_text(advice), "time_slice 87.1, exclusive 57.1");
  EXPECT_TRUE(rejected_for(advice, Technique::kMps, "mps.clients"));
}

TEST(Advisor, Golden14FiftyRunnersFitANewerDriver) {
  Node node = h200();
  node.driver_major = 590;

  const Advice advice = recommend(node, demand(WorkKind::kLow, 50, {1000, 4, .1}));

  EXPECT_EQ(options_text(advice), "mps 90.2, time_slice 43.1, exclusive 30.7");
  EXPECT_TRUE(rejected_for(advice, Technique::kMpsStatic, "mps_static.chunks"));
}

TEST(Advisor, Golden15MoreMemoryThanThereIs) {
  Node node = a100();
  node.may_preload = true;
  node.host_memory_mib = 128000;

  const Advice advice = recommend(node, demand(WorkKind::kInteractive, 4, {20000, 54, .1}));

  EXPECT_EQ(options_text(advice), "swap 39.2, exclusive 34.6");
  EXPECT_TRUE(rejected_for(advice, Technique::kMps, "mem.sum"));
  EXPECT_TRUE(rejected_for(advice, Technique::kTimeSlice, "mem.sum"));
}

TEST(Advisor, ListsEveryFailedGateNotOnlyTheFirst) {
  Node node = t4();
  node.has_mps = false;

  const Advice advice =
      recommend(node, demand(WorkKind::kLow, 50, {4000, 20, .2}, Trust::kStrangers));

  EXPECT_EQ(codes_of(advice, Technique::kMps),
            (Codes{"mps.no_binary", "mps.trust", "mps.clients", "mem.sum"}));
}

TEST(Advisor, EveryTechniqueIsEitherAnOptionOrRejectedWithExplainedCodes) {
  for (const WorkKind kind : kWorkKinds) {
    for (const Trust trust : {Trust::kOneProcess, Trust::kTeam, Trust::kStrangers}) {
      const Advice advice = recommend(a100(), demand(kind, 3, {3000, 20, .5}, trust));

      EXPECT_EQ(advice.options.size() + advice.rejections.size(), kTechniques.size());
      for (const Rejection& rejection : advice.rejections) {
        ASSERT_FALSE(rejection.codes.empty());
        for (const std::string& code : rejection.codes) {
          EXPECT_NE(explain_code(code), code) << "no words for it";
        }
      }
    }
  }
}

TEST(Advisor, MpsOptionWarnsOfItsFaultDomainAndStatesItsLimits) {
  const Advice advice = recommend(h200(), demand(WorkKind::kLow, 7, {1200, 16, .9}));

  ASSERT_FALSE(advice.options.empty());
  const Option& best = advice.options[0];
  EXPECT_EQ(best.technique, Technique::kMps);
  EXPECT_EQ(best.plan.thread_percent, 14U);
  EXPECT_EQ(best.plan.memory_limits_mib.size(), 7U);
  EXPECT_EQ(best.plan.memory_limits_mib[0], (143771 - 7 * 500) / 7);
  EXPECT_EQ(best.reasons.size(), 2U);
  ASSERT_FALSE(best.warnings.empty());
  EXPECT_NE(best.warnings[0].find("fault domain"), std::string::npos);
}

TEST(Advisor, UnequalJobsArePlacedTogether) {
  Demand wanted = demand(WorkKind::kPerformance, 1, {18000, 40, 1});
  wanted.jobs.push_back({9000, 28, 1});
  wanted.jobs.push_back({4000, 14, 1});

  const Advice advice = recommend(with_mig(a100(), MigAvailability::kOn), wanted);

  ASSERT_EQ(advice.options[0].technique, Technique::kMig);
  EXPECT_EQ(advice.options[0].plan.text, "3g.20gb@0 2g.10gb@4 1g.5gb@6");
}

}  // namespace
}  // namespace septet::partition
