#include "agent/experiment_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace septet::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ExperimentDevice a100() {
  return {.simulated = true,
          .supports_mig = true,
          .most_partitions = 7,
          .smallest_profile = "1g.5gb",
          .profiles = {{"1g.5gb", 7}, {"2g.10gb", 3}, {"3g.20gb", 2}}};
}

std::vector<std::string> names(const ExperimentPlan& plan) {
  std::vector<std::string> result;
  for (const PlannedConfiguration& configuration : plan.configurations) {
    result.push_back(configuration.name());
  }
  return result;
}

TEST(ExperimentPlan, IsTechniquesTimesReplicasTimesConcurrency) {
  const auto plan = plan_experiment(
      {.techniques = {"mig", "streams"}, .replicas = {1, 7}, .concurrency = {1, 4, 16}}, a100());

  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_THAT(names(*plan), ElementsAre("mig-1", "mig-7", "streams-1", "streams-7"));
  EXPECT_EQ(plan->cells(), 12u);
}

TEST(ExperimentPlan, WithoutATechniqueTakesAllAndNamesWhatCannotRun) {
  const auto plan = plan_experiment({.replicas = {2}, .concurrency = {1}}, a100());

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(names(*plan), ElementsAre("mig-2", "time-slicing-2", "streams-2"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("Left out: mps")));
}

TEST(ExperimentPlan, MeasuresUndividedTechniquesAtTheMostReplicasOnlyWhenAsked) {
  const auto plan = plan_experiment(
      {.replicas = {1, 2, 7}, .concurrency = {1}, .undivided_at_most_only = true}, a100());

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(names(*plan), ElementsAre("mig-1", "mig-2", "mig-7", "time-slicing-7", "streams-7"));
}

TEST(ExperimentPlan, ProfilesAreComparedWithTheGpuFullOfEach) {
  const auto plan = plan_experiment(
      {.techniques = {"mig"}, .concurrency = {1}, .profiles = {"1g.5gb", "3g.20gb"}}, a100());

  ASSERT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_THAT(names(*plan), ElementsAre("mig-1g.5gb-7", "mig-3g.20gb-2"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("1g.5gb and 3g.20gb")));
}

TEST(ExperimentPlan, ReplicasThatAProfileHasNoRoomForAreLeftOut) {
  const auto plan = plan_experiment({.techniques = {"mig"},
                                     .replicas = {1, 3},
                                     .concurrency = {1},
                                     .profiles = {"2g.10gb", "3g.20gb"}},
                                    a100());

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(names(*plan), ElementsAre("mig-2g.10gb-1", "mig-2g.10gb-3", "mig-3g.20gb-1"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("room for 2 3g.20gb partitions")));
}

TEST(ExperimentPlan, AnUnknownProfileIsAnErrorThatNamesThoseThereAre) {
  const auto plan =
      plan_experiment({.techniques = {"mig"}, .concurrency = {1}, .profiles = {"9g.90gb"}}, a100());

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(plan.error().text(), HasSubstr("2g.10gb"));
}

TEST(ExperimentPlan, SaysWhatIsSimulatedAndOnlyThen) {
  ExperimentDevice real = a100();
  real.simulated = false;
  const ExperimentRequest request{.techniques = {"mig"}, .replicas = {1}, .concurrency = {1}};

  EXPECT_THAT(plan_experiment(request, a100())->notes, Contains(HasSubstr("Simulated: mig")));
  EXPECT_THAT(plan_experiment(request, real)->notes, Not(Contains(HasSubstr("Simulated"))));
}

TEST(ExperimentPlan, WithoutLimitsItSaysSoAndClaimsNoShares) {
  ExperimentDevice unlimited = a100();
  unlimited.limited = false;

  const auto plan =
      plan_experiment({.techniques = {"mig"}, .replicas = {1}, .concurrency = {1}}, unlimited);

  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("Simulated without limits")));
}

TEST(ExperimentPlan, MorePartitionsThanTheGpuHasRoomForAreLeftOutWithTheReason) {
  const auto plan =
      plan_experiment({.techniques = {"mig"}, .replicas = {7, 8}, .concurrency = {1}}, a100());

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(names(*plan), ElementsAre("mig-7"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("room for 7 1g.5gb partitions")));
}

TEST(ExperimentPlan, AGpuWithoutPartitionsRunsTheRest) {
  const auto plan = plan_experiment({.replicas = {1}, .concurrency = {1}}, {.simulated = true});

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(names(*plan), ElementsAre("time-slicing-1", "streams-1"));
  EXPECT_THAT(plan->notes, Contains(HasSubstr("cannot be partitioned")));
}

TEST(ExperimentPlan, NothingThatCanRunIsAnErrorWithTheReason) {
  const auto plan =
      plan_experiment({.techniques = {"mps"}, .replicas = {1}, .concurrency = {1}}, a100());

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(plan.error().message, HasSubstr("MPS shares a real GPU"));
}

TEST(ExperimentPlan, AnUnknownTechniqueIsAnErrorThatNamesTheNearest) {
  const auto plan =
      plan_experiment({.techniques = {"timeslicing"}, .replicas = {1}, .concurrency = {1}}, a100());

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(plan.error().hint, HasSubstr("'time-slicing'"));
}

TEST(ExperimentPlan, NumbersBelowOneAreAnError) {
  EXPECT_FALSE(plan_experiment({.replicas = {0}, .concurrency = {1}}, a100()).ok());
  EXPECT_FALSE(plan_experiment({.replicas = {1}, .concurrency = {}}, a100()).ok());
}

TEST(ParseNumbers, UnderstandsListsAndRanges) {
  EXPECT_THAT(*parse_numbers("7", "replicas"), ElementsAre(7));
  EXPECT_THAT(*parse_numbers("1:4", "replicas"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*parse_numbers("1:10:3", "replicas"), ElementsAre(1, 4, 7, 10));
  EXPECT_THAT(*parse_numbers("7,1,2,1:2", "replicas"), ElementsAre(1, 2, 7));
}

TEST(ParseNumbers, AnythingElseIsAnErrorThatNamesTheText) {
  for (const char* text : {"", "a", "1:", "3:1", "1:5:0", "1:2:3:4", "-1", "1,,2", "99999"}) {
    const auto numbers = parse_numbers(text, "--replicas");
    ASSERT_FALSE(numbers.ok()) << text;
    EXPECT_THAT(numbers.error().message, HasSubstr("--replicas"));
  }
}

class TimeLeftTest : public ::testing::Test {
 protected:
  ExperimentPlan plan_ = *plan_experiment(
      {.techniques = {"mig"}, .replicas = {1, 2}, .concurrency = {1, 2, 4}}, a100());
};

TEST_F(TimeLeftTest, BeginsWithWhatIsExpected) {
  EXPECT_EQ(TimeLeft(plan_, seconds(10), seconds(5)).left(), seconds(2 * 10 + 6 * 5));
}

TEST_F(TimeLeftTest, LearnsFromWhatWasDone) {
  TimeLeft time_left(plan_, seconds(10), seconds(5));
  time_left.set_up_done(seconds(20));
  time_left.cell_done(seconds(7));
  time_left.cell_done(seconds(9));

  EXPECT_EQ(time_left.left(), seconds(15 + 4 * 7));
}

TEST_F(TimeLeftTest, IsNothingAtTheEnd) {
  TimeLeft time_left(plan_, seconds(10), seconds(5));
  time_left.set_up_done(seconds(1));
  time_left.set_up_done(seconds(1));
  time_left.cell_done(seconds(1));
  time_left.cells_skipped(5);

  EXPECT_EQ(time_left.left(), Duration::zero());
}

}  // namespace
}  // namespace septet::agent
