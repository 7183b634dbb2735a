#include "partition/technique.h"

#include <gtest/gtest.h>

#include <string>

namespace septet::partition {
namespace {

std::string letters(WorkKind kind) {
  std::string text;
  for (const Technique technique : kTechniques) {
    const Fit fit = verdict(kind, technique).fit;
    text += fit == Fit::kYes ? 'Y' : fit == Fit::kConditional ? 'C' : 'N';
  }
  return text;
}

// Columns: mig, vgpu_mig, mig_mps, mps_v3, mps_static, mps, vgpu, time_slice, shim, streams, green,
// swap, exclusive.
TEST(Technique, TheTableOfKindsOfWork) {
  EXPECT_EQ(letters(WorkKind::kLatency), "YYCYYCCNNCCNY");
  EXPECT_EQ(letters(WorkKind::kInteractive), "YYCYCCYCCNNCY");
  EXPECT_EQ(letters(WorkKind::kPerformance), "YYCYYCNNNYYCY");
  EXPECT_EQ(letters(WorkKind::kLow), "YCYYYYCYYNNYY");
}

TEST(Technique, EveryConditionalVerdictNamesItsCondition) {
  for (const WorkKind kind : kWorkKinds) {
    for (const Technique technique : kTechniques) {
      const Verdict found = verdict(kind, technique);
      EXPECT_EQ(found.fit == Fit::kConditional, *found.condition != '\0') << to_string(technique);
    }
  }
}

TEST(Technique, TheTableOfIsolation) {
  EXPECT_STREQ(isolation(Technique::kMig).memory, "hardware, bandwidth and L2 included");
  EXPECT_STREQ(isolation(Technique::kMps).faults, "none: a fatal fault reaches every client");
  EXPECT_STREQ(isolation(Technique::kMps).compute, "thread ceiling, not a reservation");
  EXPECT_STREQ(isolation(Technique::kTimeSlice).memory, "none: every allocation stays resident");
  EXPECT_STREQ(isolation(Technique::kVgpu).memory, "fixed frame buffer");
  EXPECT_STREQ(isolation(Technique::kStreams).faults, "none: a sticky error ends the process");
  for (const Technique technique : kTechniques) {
    EXPECT_NE(isolation(technique).needs, nullptr) << to_string(technique);
  }
}

TEST(Technique, NamesReadBack) {
  for (const Technique technique : kTechniques) {
    EXPECT_EQ(parse_technique(to_string(technique)), technique);
  }
  for (const WorkKind kind : kWorkKinds) {
    EXPECT_EQ(parse_work_kind(to_string(kind)), kind);
  }
  EXPECT_FALSE(parse_technique("hope"));
}

}  // namespace
}  // namespace septet::partition
