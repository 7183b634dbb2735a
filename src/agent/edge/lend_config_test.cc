#include "agent/edge/lend_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace septet::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

LendConfig parsed(const std::string& yaml) {
  const Result<LendConfig> config = parse_lend_config(yaml, "septet.yaml");
  EXPECT_TRUE(config.ok()) << config.error().text();
  return config.ok() ? *config : LendConfig{};
}

std::string refusal(const std::string& yaml) {
  const Result<LendConfig> config = parse_lend_config(yaml, "septet.yaml");
  EXPECT_FALSE(config.ok());
  return config.ok() ? std::string() : config.error().message;
}

TEST(LendConfig, AnEmptyFileAndOtherPartsSayNothing) {
  for (const char* yaml : {"", "services: {a: 1}", "lend:\nsharing:\n"}) {
    const LendConfig config = parsed(yaml);

    EXPECT_THAT(config.sharing, IsEmpty());
    EXPECT_EQ(config.lender.policy.idle_grace, lend::Policy{}.idle_grace);
  }
}

TEST(LendConfig, TimesAndQuotasAreRead) {
  const LendConfig config = parsed(R"(
lend:
  idle_grace: 90s
  sample_every: 500ms
  may_change_layout: false
  quota: {leases: 4, gpu_percent: 42.5, memory: 40GB, time: 24h}
  users: {ada: {leases: 7}}
  groups: {vision: {gpu_percent: 300}}
)");

  const lend::Policy& policy = config.lender.policy;
  EXPECT_EQ(policy.idle_grace, seconds(90));
  EXPECT_EQ(config.lender.sample_every, milliseconds(500));
  EXPECT_FALSE(policy.may_change_layout);
  EXPECT_EQ(policy.every_user.leases, 4U);
  EXPECT_EQ(policy.every_user.share_permille, 425U);
  EXPECT_EQ(policy.every_user.time, std::chrono::hours(24));
  EXPECT_EQ(policy.users.at("ada").leases, 7U);
  EXPECT_EQ(policy.groups.at("vision").share_permille, 3000U);
}

TEST(LendConfig, EveryTechniqueIsOneRule) {
  const LendConfig config = parsed(R"(
sharing:
  - {gpus: [0, GPU-1234], technique: mig}
  - {gpus: 2, technique: mps, clients: 4}
  - {gpus: "0000:07:00.0", technique: time_slice, slice: long}
  - {gpus: all, technique: whole}
)");

  ASSERT_EQ(config.sharing.size(), 4U);
  EXPECT_THAT(config.sharing[0].gpus, ElementsAre("0", "GPU-1234"));
  EXPECT_EQ(config.sharing[0].technique, SharingTechnique::kMig);
  EXPECT_EQ(config.sharing[1].clients, 4U);
  EXPECT_EQ(config.sharing[2].slice_length, partition::SliceLength::kLong);
  EXPECT_THAT(config.sharing[3].gpus, IsEmpty());
}

TEST(LendConfig, WhatIsWrongIsNamedWithFileLineAndKey) {
  EXPECT_EQ(refusal("lend:\n  idle_grace: soon\n").substr(0, 33),
            "septet.yaml:2: lend.idle_grace: '");
  EXPECT_THAT(refusal("lend:\n  idle_graze: 5m\n"),
              StartsWith("septet.yaml:2: lend.idle_graze: is unknown; did you mean idle_grace"));
  EXPECT_THAT(refusal("lend:\n  quota:\n    leases: many\n"),
              StartsWith("septet.yaml:3: lend.quota.leases: is a number"));
  EXPECT_THAT(refusal("lend:\n  quota: [1]\n"), StartsWith("septet.yaml:2: lend.quota: is a map"));
  EXPECT_THAT(refusal("lend:\n  may_change_layout: perhaps\n"),
              StartsWith("septet.yaml:2: lend.may_change_layout: is true or false"));
  EXPECT_THAT(refusal("sharing:\n  - {gpus: 0, technique: mig}\n  - {technique: magic}\n"),
              StartsWith("septet.yaml:3: sharing[1].technique: 'magic' is none of any, mig,"));
  EXPECT_THAT(refusal("sharing:\n  - {gpus: 0}\n"),
              StartsWith("septet.yaml:2: sharing[0]: is a map with a technique"));
  EXPECT_THAT(refusal("sharing:\n  - {technique: mig, clients: 4}\n"),
              HasSubstr("sharing[0].clients: belongs to mps"));
  EXPECT_THAT(refusal("sharing:\n  - {technique: mps, slice: short}\n"),
              HasSubstr("sharing[0].slice: belongs to time_slice"));
  EXPECT_THAT(refusal("sharing:\n  - {technique: mps, clients: 0}\n"), HasSubstr("from 1 to 60"));
  EXPECT_THAT(refusal("sharing: mig\n"), StartsWith("septet.yaml:1: sharing: is a list"));
  EXPECT_THAT(refusal("lend: {\n"), StartsWith("septet.yaml:2: is not understood"));
}

}  // namespace
}  // namespace septet::agent
