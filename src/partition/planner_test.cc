#include "partition/planner.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "partition/planner_testing.h"

namespace septet::partition {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Planner, FillsAnEmptyGpu) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  const Plan plan = planned(request_for(space, {"1g.5gb:7"}));

  EXPECT_EQ(layout_text(plan), "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6");
  EXPECT_TRUE(plan.keep.empty());
  EXPECT_TRUE(plan.destroy.empty());
  EXPECT_EQ(plan.unused_units, 1U);
  EXPECT_EQ(plan.unused_slices, 0U);
}

TEST(Planner, PlacesLikeTheDriverWhenAnyPlaceWouldDo) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  EXPECT_EQ(layout_text(planned(request_for(space, {"1g.5gb"}))), "1g.5gb@6");
  EXPECT_EQ(layout_text(planned(request_for(space, {"3g.20gb"}))), "3g.20gb@4");
}

TEST(Planner, ChangesOnlyWhatMustChange) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"1g.5gb:2", "2g.10gb", "3g.20gb"});
  request.existing = existing_layout(space,
                                     "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 "
                                     "1g.5gb@6");

  const Plan plan = planned(request);

  EXPECT_EQ(plan.destroy.size(), 5U);
  EXPECT_EQ(plan.create.size(), 2U);
  EXPECT_EQ(plan.keep.size(), 2U);
  for (const DestroyedInstance& destroyed : plan.destroy) {
    EXPECT_FALSE(destroyed.reason.empty());
  }
}

TEST(Planner, KeepsABusyInstanceThatCanStay) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  for (unsigned busy = 0; busy < 4; ++busy) {
    PlanRequest request = request_for(space, {"1g.5gb:2", "2g.10gb", "3g.20gb"});
    request.existing =
        existing_layout(space, "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6");
    request.existing[busy].occupancy = Occupancy::kBusy;

    const Plan plan = planned(request);

    EXPECT_TRUE(std::any_of(plan.keep.begin(), plan.keep.end(), [&](const KeptInstance& kept) {
      return kept.instance.placement.start == busy;
    }));
    EXPECT_EQ(plan.destroy.size(), 5U);
  }
}

TEST(Planner, SparesIdleInstancesBeforeFreeOnes) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"1g.5gb"});
  request.existing = existing_layout(space, "1g.5gb@0 1g.5gb@3 1g.5gb@6");
  request.existing[1].occupancy = Occupancy::kIdle;

  const Plan plan = planned(request);

  ASSERT_EQ(plan.keep.size(), 1U);
  EXPECT_EQ(plan.keep[0].instance.placement.start, 3U);
}

TEST(Planner, DoesNothingWhenTheLayoutIsThere) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"3g.20gb", "2g.10gb"});
  request.existing = existing_layout(space, "3g.20gb@4 2g.10gb@2");

  EXPECT_TRUE(planned(request).changes_nothing());
}

TEST(Planner, AddsBesideWhatExists) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"2g.10gb"});
  request.policy = ExistingPolicy::kKeep;
  request.existing = existing_layout(space, "3g.20gb@0 1g.5gb@6");

  const Plan plan = planned(request);

  EXPECT_EQ(layout_text(plan), "3g.20gb@0 2g.10gb@4 1g.5gb@6");
  EXPECT_EQ(plan.keep.size(), 2U);
}

TEST(Planner, EveryOrderGivesTheSameLayout) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  std::vector<std::string> words = {"1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"};
  const std::string first = layout_text(planned(request_for(space, words)));

  do {
    EXPECT_EQ(layout_text(planned(request_for(space, words))), first);
  } while (std::next_permutation(words.begin(), words.end()));
}

TEST(Planner, TakesTheSmallestThatIsLargeEnough) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  const Plan plan = planned(request_for(space, {">=2g:3"}));

  for (const CreatedInstance& created : plan.create) {
    EXPECT_EQ(created.profile, "2g.10gb");
  }
  EXPECT_EQ(plan.create.size(), 3U);
}

TEST(Planner, PacksComputeInstances) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  const Plan plan = planned(request_for(space, {"1c.3g.20gb:5"}));

  ASSERT_EQ(plan.create.size(), 2U);
  EXPECT_EQ(plan.create[0].compute.size() + plan.create[1].compute.size(), 5U);
}

TEST(Planner, CompletesAnInstanceWithoutComputeInstance) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"3g.20gb"});
  request.existing = existing_layout(space, "3g.20gb@4");
  request.existing[0].instance.compute_instances.clear();

  const Plan plan = planned(request);

  ASSERT_EQ(plan.keep.size(), 1U);
  EXPECT_THAT(plan.keep[0].compute.create, testing::ElementsAre(3U));
  EXPECT_FALSE(plan.changes_nothing());
}

TEST(Planner, RespectsTheLimitOfAMediaProfile) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"1g.5gb+me"});
  request.policy = ExistingPolicy::kKeep;
  request.existing = existing_layout(space, "1g.5gb+me@0");

  const PlanOutcome outcome = make_plan(request);

  EXPECT_TRUE(std::holds_alternative<Infeasible>(outcome));
}

TEST(Planner, SaysThatSlicesBind) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  const Infeasible why = refused(request_for(space, {"4g.20gb", "2g.10gb:2"}));

  EXPECT_EQ(why.constraint, Constraint::kComputeSlices);
  EXPECT_THAT(why.message, HasSubstr("8 compute slices"));
  EXPECT_THAT(why.alternatives, testing::Contains("4g.20gb 2g.10gb 1g.5gb"));
  EXPECT_THAT(why.alternatives, testing::Contains("3g.20gb 2g.10gb:2"));
}

TEST(Planner, SaysThatPlacesCollide) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  const Infeasible why = refused(request_for(space, {"3g.20gb:2", "1g.5gb"}));

  EXPECT_EQ(why.constraint, Constraint::kUnits);
  const Infeasible collide = refused(request_for(space, {"4g.20gb", "3g.20gb@0"}));
  EXPECT_EQ(collide.constraint, Constraint::kPlacementRules);
  EXPECT_THAT(collide.message, HasSubstr("starts at 0"));
}

TEST(Planner, SaysWhereAProfileMayStart) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");

  const Infeasible why = refused(request_for(space, {"2g.10gb@6"}));

  EXPECT_EQ(why.constraint, Constraint::kIllegalStart);
  EXPECT_THAT(why.hint, HasSubstr("0, 2 and 4"));
}

TEST(Planner, NamesWhoIsInTheWay) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"7g.40gb"});
  request.existing = existing_layout(space, "1g.5gb@2");
  request.existing[0].occupancy = Occupancy::kBusy;
  request.existing[0].holder = "python (pid 4242)";

  const Infeasible why = refused(request);

  EXPECT_EQ(why.constraint, Constraint::kBusyInstances);
  EXPECT_THAT(why.message, HasSubstr("python (pid 4242)"));
  for (const std::string& alternative : why.alternatives) {
    EXPECT_THAT(alternative, HasSubstr("1g.5gb"));
  }
}

TEST(Planner, MayDrainWhatIsBusyAsTheLastResort) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"7g.40gb"});
  request.existing = existing_layout(space, "1g.5gb@2");
  request.existing[0].occupancy = Occupancy::kBusy;
  request.may_drain = true;

  EXPECT_EQ(planned(request).destroy.size(), 1U);
}

TEST(Planner, SaysWhenMovingWouldHelp) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  PlanRequest request = request_for(space, {"4g.20gb"});
  request.policy = ExistingPolicy::kKeep;
  request.existing = existing_layout(space, "1g.5gb@1");

  const Infeasible why = refused(request);

  EXPECT_EQ(why.constraint, Constraint::kExistingInstances);
  EXPECT_THAT(why.hint, HasSubstr("--move"));
}

TEST(Planner, ReadsNamesOfAnotherDriver) {
  const LayoutSpace space = space_of("A100-SXM4-80GB");
  std::vector<std::string> notes;

  const auto wishes = resolve_want(*parse_want(std::vector<std::string>{"7g.79gb"}), space, notes);

  ASSERT_TRUE(wishes.ok());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("7g.80gb"));
}

TEST(Planner, SuggestsTheNearestName) {
  const LayoutSpace space = space_of("A100-SXM4-40GB");
  std::vector<std::string> notes;

  const auto wishes = resolve_want(*parse_want(std::vector<std::string>{"1g.50gb"}), space, notes);

  ASSERT_FALSE(wishes.ok());
  EXPECT_EQ(wishes.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(wishes.error().hint, HasSubstr("did you mean 1g.5gb"));
}

TEST(Planner, DoesNotTrustWrongCounts) {
  std::vector<gpu::GpuInstanceProfile> profiles = space_of("A30").profiles();
  for (gpu::GpuInstanceProfile& profile : profiles) {
    profile.max_instances = profile.name == "1g.6gb" ? 2 : 7;
  }
  const LayoutSpace space = *LayoutSpace::create(profiles);

  EXPECT_EQ(planned(request_for(space, {"1g.6gb:4"})).create.size(), 4U);
  EXPECT_EQ(refused(request_for(space, {"1g.6gb+me:2"})).constraint, Constraint::kTooManyOfProfile);
}

}  // namespace
}  // namespace septet::partition
