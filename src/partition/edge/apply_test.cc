#include "partition/edge/apply.h"

#include <gmock/gmock.h>

#include "partition/edge/apply_testing.h"

namespace septet::partition {
namespace {

using testing::HasSubstr;

constexpr const char* kSevenSmall =
    "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6";

TEST_F(Apply, EnablesTheModeAndCreatesEverything) {
  const auto report = apply("1g.5gb:7");

  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->outcome, TransactionOutcome::kApplied);
  EXPECT_FALSE(error_of(*report));
  EXPECT_EQ(layout(), kSevenSmall);
  EXPECT_EQ(report->uuids.size(), 7U);
  EXPECT_EQ(report->driver_calls, 15U);
  EXPECT_FALSE(has_journal());
}

TEST_F(Apply, DoesNothingTheSecondTime) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());

  const auto report = apply("1g.5gb:7");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kUnchanged);
  EXPECT_EQ(report->driver_calls, 0U);
}

TEST_F(Apply, MapsOldUuidsToNewOnes) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());

  const auto report = apply("1g.5gb:2 2g.10gb 3g.20gb");

  ASSERT_TRUE(report.ok());
  unsigned stayed = 0;
  unsigned gone = 0;
  unsigned fresh = 0;
  for (const UuidChange& change : report->uuids) {
    stayed += change.before == change.after ? 1 : 0;
    gone += change.after.value().empty() ? 1 : 0;
    fresh += change.before.value().empty() ? 1 : 0;
  }
  EXPECT_EQ(stayed, 2U);
  EXPECT_EQ(gone, 5U);
  EXPECT_EQ(fresh, 2U);
}

TEST_F(Apply, LeavesABusyInstanceRunning) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());
  hold(3);

  const auto report = apply("1g.5gb:2 2g.10gb 3g.20gb");

  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->outcome, TransactionOutcome::kApplied);
  EXPECT_EQ(report->plan->plan.destroy.size(), 5U);
  EXPECT_THAT(layout(), HasSubstr("1g.5gb@3"));
  EXPECT_EQ(node_.gpus[0].clients.size(), 1U);
}

TEST_F(Apply, MakesNoCallForWhatCannotBe) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());
  const gpu::SimulatedGpu before = node_.gpus[0];

  const auto report = apply("4g.20gb 2g.10gb:2");

  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kNoCapacity);
  EXPECT_THAT(report.error().hint, HasSubstr("4g.20gb 2g.10gb 1g.5gb"));
  EXPECT_EQ(node_.gpus[0], before);
}

TEST_F(Apply, NamesWhoHoldsWhatMustGo) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());
  hold(3);

  const auto report = apply("7g.40gb");

  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(report.error().message, HasSubstr("python (pid 4242)"));
  EXPECT_EQ(layout(), kSevenSmall);
}

TEST_F(Apply, RollsBackWhenTheDriverRefusesHalfWay) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "create_gpu_instance";
    rule.code = gpu::NvmlCode::kInsufficientResources;
  });

  const auto report = apply("1g.5gb:2 2g.10gb 3g.20gb");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kRolledBack);
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kNoCapacity);
  EXPECT_EQ(layout(), kSevenSmall);
  EXPECT_FALSE(has_journal());
}

TEST_F(Apply, RemovesAnOrphanWhenTheComputeInstanceFails) {
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "create_compute_instance";
    rule.first = 3;
    rule.code = gpu::NvmlCode::kInsufficientResources;
  });

  const auto report = apply("1g.5gb:7");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kRolledBack);
  EXPECT_TRUE(node_.gpus[0].instances.empty());
  EXPECT_FALSE(node_.gpus[0].mig_current);
}

TEST_F(Apply, DoesNotBelieveASuccessWithoutEffect) {
  add_fault([](gpu::FaultRule& rule) {
    rule.call = "create_gpu_instance";
    rule.first = 2;
    rule.count = 0;
    rule.code = gpu::NvmlCode::kSuccess;
  });

  const auto report = apply("1g.5gb:2");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kRolledBack);
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kVerification);
}

TEST_F(Apply, GoesOnWhenAnErrorHadItsEffect) {
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "create_gpu_instance";
    rule.code = gpu::NvmlCode::kUnknown;
    rule.takes_effect = true;
  });

  const auto report = apply("1g.5gb:2");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kApplied);
  EXPECT_FALSE(error_of(*report));
}

TEST_F(Apply, SaysThatTheModeWaitsForAReset) {
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "set_mig_mode";
    rule.count = 0;
    rule.activation = gpu::NvmlCode::kResetRequired;
  });

  const auto report = apply("1g.5gb:7");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kResetNeeded);
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kResetNeeded);

  node_.faults.clear();
  gpu::reboot(node_);
  const auto restored = restore_gpu(*driver_, 0, options());

  ASSERT_TRUE(restored.ok()) << restored.error().text();
  EXPECT_EQ(layout(), kSevenSmall);
}

TEST_F(Apply, TakesAPendingModeBackWhenTheGpuIsHeld) {
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "set_mig_mode";
    rule.activation = gpu::NvmlCode::kInUse;
  });

  const auto report = apply("1g.5gb:7");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kRolledBack);
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kPrecondition);
  EXPECT_FALSE(node_.gpus[0].mig_pending);
}

TEST_F(Apply, ReportsPermissionAndTouchesNothing) {
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "write";
    rule.count = 0;
    rule.code = gpu::NvmlCode::kNoPermission;
  });

  const auto report = apply("1g.5gb:7");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kRolledBack);
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kPermission);
  EXPECT_EQ(layout(), "MIG off");
}

TEST_F(Apply, KeepsTheJournalWhenTheGpuIsLost) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "create_gpu_instance";
    rule.loses_gpu = true;
  });

  const auto report = apply("1g.5gb:2 2g.10gb 3g.20gb");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, TransactionOutcome::kUnclear);
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kVerification);
  EXPECT_TRUE(has_journal());

  node_.gpus[0].lost = false;
  gpu::reboot(node_);
  EXPECT_TRUE(restore_gpu(*driver_, 0, options()).ok());
  EXPECT_FALSE(has_journal());
}

TEST_F(Apply, LeavesForeignInstancesAloneAndSaysSo) {
  ASSERT_TRUE(apply("3g.20gb@4").ok());
  add_fault([&](gpu::FaultRule& rule) {
    rule.call = "create_compute_instance";
    rule.foreign.create_profile = 19U;
  });

  const auto report = apply("3g.20gb@4 2g.10gb@0");

  ASSERT_TRUE(report.ok());
  EXPECT_EQ(error_of(*report)->kind, ErrorKind::kVerification);
  EXPECT_THAT(layout(), HasSubstr("1g.5gb@"));
}

TEST_F(Apply, RefusesASecondChangeAtTheSameTime) {
  const auto lock = GpuLock::take(options().state, gpu::state_of(node_.gpus[0]).uuid);
  ASSERT_TRUE(lock.ok());

  const auto report = apply("1g.5gb:7");

  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(report.error().message, HasSubstr("another septet"));
  EXPECT_EQ(layout(), "MIG off");
}

TEST_F(Apply, RefusesADamagedJournal) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());
  const gpu::GpuUuid uuid = gpu::state_of(node_.gpus[0]).uuid;
  const std::string path = options().state.journal_path(uuid);
  for (const char* text : {"{\"septet_journal\":1", "{}\n", "no json\n", "{\"septet_journal\":2}\n",
                           "{\"septet_journal\":1,\"gpu\":\"GPU-x\"}\n"}) {
    ASSERT_TRUE(os::replace_file(path, text).ok());

    const auto report = apply("3g.20gb");

    ASSERT_FALSE(report.ok()) << text;
    EXPECT_THAT(report.error().message, HasSubstr(path + ":1:")) << text;
    EXPECT_EQ(layout(), kSevenSmall);
  }
}

TEST_F(Apply, RefusesWhereItCannotKeepAJournal) {
  ApplyOptions blocked = options();
  ASSERT_TRUE(os::replace_file(folder_->path() + "/file", "x").ok());
  blocked.state = StateFolder(folder_->path() + "/file");

  const auto report = apply_want(*driver_, 0, want_of("1g.5gb:7"), blocked);

  EXPECT_FALSE(report.ok());
  EXPECT_EQ(layout(), "MIG off");
}

TEST_F(Apply, RestoresTheLayoutAfterAReboot) {
  ASSERT_TRUE(apply("3g.20gb 2g.10gb 1c.2g.10gb:2").ok());
  const std::string before = layout();
  gpu::reboot(node_);
  ASSERT_NE(layout(), before);

  const auto report = restore_gpu(*driver_, 0, options());

  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(layout(), before);
}

TEST_F(Apply, SwitchesMigOff) {
  ASSERT_TRUE(apply("1g.5gb:7").ok());

  const auto report =
      apply_layout(*driver_, 0, {.mode = gpu::MigMode::kDisabled, .instances = {}}, options());

  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(layout(), "MIG off");
}

TEST_F(Apply, LaysOutEveryModel) {
  for (const gpu::GpuModel& model : gpu::gpu_models()) {
    if (model.profiles.empty()) {
      continue;
    }
    use_model(model.key);

    const auto report = apply(">=1g:2");

    ASSERT_TRUE(report.ok()) << model.key << ": " << report.error().text();
    EXPECT_EQ(report->outcome, TransactionOutcome::kApplied) << model.key;
  }
}

TEST_F(Apply, RefusesAGpuWithoutMig) {
  use_model("T4");

  const auto report = apply("1g.5gb");

  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kPrecondition);
}

}  // namespace
}  // namespace septet::partition
