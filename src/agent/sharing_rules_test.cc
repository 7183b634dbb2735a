#include "agent/sharing_rules.h"

#include <gtest/gtest.h>

#include "lend/slice_want.h"
#include "support/ledger_driver.h"

namespace septet::agent {
namespace {

using lend::Partition;

gpu::GpuState gpu(unsigned index, const char* uuid, const char* pci) {
  gpu::GpuState state;
  state.index = index;
  state.uuid = gpu::GpuUuid(uuid);
  state.pci_bus_id = pci;
  return state;
}

SharingRule rule(SharingTechnique technique) { return {{}, technique, std::nullopt, std::nullopt}; }

bool serves(const Partition& partition, const char* want) {
  return could_serve(partition, *lend::parse_slice_want(want));
}

TEST(SharingRules, TheFirstRuleThatNamesAGpuHolds) {
  const std::vector<SharingRule> rules = {
      {{"0", "GPU-b"}, SharingTechnique::kMig, {}, {}},
      {{"0000:07:00.0"}, SharingTechnique::kMps, {}, {}},
      {{}, SharingTechnique::kWhole, {}, {}},
  };

  EXPECT_EQ(rule_for(rules, gpu(0, "GPU-a", "00000000:01:00.0")), &rules[0]);
  EXPECT_EQ(rule_for(rules, gpu(1, "GPU-b", "00000000:02:00.0")), &rules[0]);
  EXPECT_EQ(rule_for(rules, gpu(2, "GPU-c", "00000000:07:00.0")), &rules[1]);
  EXPECT_EQ(rule_for(rules, gpu(3, "GPU-d", "00000000:08:00.0")), &rules[2]);
  EXPECT_EQ(rule_for({}, gpu(0, "GPU-a", "")), nullptr);
}

TEST(SharingRules, MigLendsDevicesAndNoSharesOfThem) {
  const Partition slice = under_rule(testing::seven_slices()[0], rule(SharingTechnique::kMig));

  EXPECT_TRUE(serves(slice, "1g.5gb"));
  EXPECT_TRUE(serves(slice, slice.id.value().c_str()));
  EXPECT_FALSE(serves(slice, "mps:25%@1g.5gb"));
  EXPECT_FALSE(serves(slice, "time-slice:1GB"));
}

TEST(SharingRules, MpsLendsSharesAndNotTheWhole) {
  const Partition whole = under_rule(testing::whole_gpu(), rule(SharingTechnique::kMps));

  EXPECT_TRUE(serves(whole, "mps:25%"));
  EXPECT_FALSE(serves(whole, "gpu"));
  EXPECT_FALSE(serves(whole, "gpu@0"));
  EXPECT_FALSE(serves(whole, ">=10GB"));
}

TEST(SharingRules, WholeIsAlsoContentWithAWantByMemory) {
  const Partition whole = under_rule(testing::whole_gpu(), rule(SharingTechnique::kWhole));

  EXPECT_TRUE(serves(whole, "gpu"));
  EXPECT_TRUE(serves(whole, ">=10GB"));
  EXPECT_FALSE(serves(whole, "time-slice:8GB"));
}

TEST(SharingRules, AModeThatContradictsTheRuleLendsNothingAndSaysWhy) {
  const Partition whole = under_rule(testing::whole_gpu(), rule(SharingTechnique::kMig));
  const Partition slice =
      under_rule(testing::seven_slices()[0], rule(SharingTechnique::kTimeSlice));

  EXPECT_FALSE(whole.is_lendable);
  EXPECT_EQ(whole.why_not_lendable, "septet.yaml shares it by mig, and MIG is off");
  EXPECT_EQ(slice.why_not_lendable, "septet.yaml shares it by time_slice, and MIG is on");
}

TEST(SharingRules, VirtualMachinesAndStreamsKeepTheirGpu) {
  EXPECT_FALSE(under_rule(testing::whole_gpu(), rule(SharingTechnique::kVgpu)).is_lendable);
  EXPECT_FALSE(
      under_rule(testing::seven_slices()[0], rule(SharingTechnique::kStreams)).is_lendable);
}

TEST(SharingRules, LimitsAndLengthsComeWithTheRule) {
  SharingRule shares = rule(SharingTechnique::kMps);
  shares.clients = 4;
  SharingRule turns = rule(SharingTechnique::kTimeSlice);
  turns.slice_length = partition::SliceLength::kLong;

  EXPECT_EQ(under_rule(testing::whole_gpu(), shares).mps_clients, 4U);
  EXPECT_EQ(under_rule(testing::whole_gpu(), turns).time_slice, "long");
}

TEST(SharingRules, EveryTechniqueHasAWord) {
  for (const std::string& word : sharing_technique_words()) {
    EXPECT_EQ(to_string(*parse_sharing_technique(word)), word);
  }
  EXPECT_FALSE(parse_sharing_technique("MIG"));
}

}  // namespace
}  // namespace septet::agent
