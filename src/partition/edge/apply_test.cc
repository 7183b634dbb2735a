#include "partition/edge/apply.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "gpu/simulated_driver.h"
#include "gpu/simulated_instances.h"
#include "os/durable_file.h"
#include "os/owned_folder.h"
#include "partition/edge/run_transaction.h"

namespace septet::partition {
namespace {

using testing::HasSubstr;

constexpr const char* kSevenSmall =
    "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6";

Want want_of(const std::string& text) {
  const auto want = parse_want(std::vector<std::string>{text});
  CHECK(want.ok());
  return *want;
}

class Apply : public testing::Test {
 protected:
  void SetUp() override {
    // In memory where there is such a place: the sweeps write thousands of journals.
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    auto folder = os::OwnedFolder::create("apply", in_memory ? "/dev/shm" : "");
    ASSERT_TRUE(folder.ok());
    folder_ = *std::move(folder);
    use_model("A100-SXM4-40GB");
  }

  void use_model(const std::string& model) {
    node_ = *gpu::make_simulated_node(model);
    driver_.emplace(node_);
  }
  ApplyOptions options() const { return {.state = StateFolder(folder_->path())}; }
  Result<ApplyReport> apply(const std::string& want) {
    return apply_want(*driver_, 0, want_of(want), options());
  }
  std::string layout() { return to_string(layout_of(gpu::state_of(node_.gpus[0]))); }
  bool has_journal() {
    return os::read_whole_file(options().state.journal_path(gpu::state_of(node_.gpus[0]).uuid))
        .ok();
  }
  template <typename Fill>
  void add_fault(const Fill& fill) {
    gpu::FaultRule rule;
    fill(rule);
    node_.faults.push_back(std::move(rule));
  }
  void hold(unsigned start) {
    for (const gpu::GpuInstance& instance : node_.gpus[0].instances) {
      if (instance.placement.start == start) {
        gpu::SimulatedClient client;
        client.pid = 4242;
        client.name = "python";
        client.gpu_instance = instance.id.value();
        client.compute_instance = instance.compute_instances.front().id.value();
        ASSERT_EQ(gpu::attach_client(node_.gpus[0], client), gpu::NvmlCode::kSuccess);
      }
    }
  }

  std::unique_ptr<os::OwnedFolder> folder_;
  gpu::SimulatedNode node_;
  std::optional<gpu::SimulatedDriver> driver_;
};

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

// Every NVML call of a set of changes is one where the process is killed, before and after the
// call's effect: the next command ends in the old layout or the new one.
struct Change {
  const char* from;
  const char* to;
};

class CrashSweep : public Apply, public testing::WithParamInterface<Change> {
 protected:
  // The journal of a process that writes nothing any more once it is dead.
  class MortalJournal : public Journal {
   public:
    MortalJournal(const StateFolder& state, const gpu::GpuUuid& gpu,
                  const gpu::SimulatedDriver& driver)
        : file_(state, gpu), driver_(driver) {}
    Result<Ok> write_intent(const Intent& intent) override {
      return alive() ? file_.write_intent(intent) : dead();
    }
    Result<Ok> write_step(Direction direction, const ChangeStep& step) override {
      return alive() ? file_.write_step(direction, step) : dead();
    }
    Result<Ok> forget(const std::optional<StoredLayout>& desired) override {
      return alive() ? file_.forget(desired) : dead();
    }

   private:
    bool alive() const { return !driver_.was_killed(); }
    static Result<Ok> dead() { return make_error(ErrorKind::kFailed, "killed"); }
    JournalFile file_;
    const gpu::SimulatedDriver& driver_;
  };

  // Fresh GPU with the old layout; returns the new layout as planned.
  Layout prepare() {
    use_model("A100-SXM4-40GB");
    if (*GetParam().from != '\0') {
      CHECK(apply(GetParam().from).ok());
    }
    const auto plan = plan_gpu(gpu::state_of(node_.gpus[0]), want_of(GetParam().to), {});
    CHECK(plan.ok());
    return plan->after;
  }

  void change_with_death_possible(const Layout& wanted) {
    const auto observed = driver_->observe(0);
    CHECK(observed.ok());
    const auto lock = GpuLock::take(options().state, observed->uuid);
    CHECK(lock.ok());
    Transaction transaction(*observed, wanted);
    MortalJournal journal(options().state, observed->uuid, *driver_);
    run_transaction(transaction, 0, *driver_, journal);
  }
};

TEST_P(CrashSweep, EndsInTheOldOrTheNewLayout) {
  const Layout wanted = prepare();
  const std::string before = layout();
  const std::string after = to_string(wanted);
  std::set<std::string> ends;
  unsigned deaths = 0;
  for (const gpu::KillMoment moment : {gpu::KillMoment::kBefore, gpu::KillMoment::kAfter}) {
    for (std::uint64_t call = 2;; ++call) {  // the first call only looks
      prepare();
      add_fault([&](gpu::FaultRule& rule) {
        rule.call = "any";
        rule.first = call;
        rule.kill = moment;
      });
      change_with_death_possible(wanted);
      if (!driver_->was_killed()) {
        break;
      }
      ++deaths;
      node_.faults.clear();
      driver_->revive();

      const auto recovered = recover_gpu(*driver_, 0, options().state);

      ASSERT_TRUE(recovered.ok()) << recovered.error().text();
      ASSERT_THAT(layout(), testing::AnyOf(before, after)) << "killed at call " << call;
      EXPECT_FALSE(has_journal());
      EXPECT_EQ(gpu::broken_invariant(node_.gpus[0]), "");
      ends.insert(layout());
    }
  }
  EXPECT_GT(deaths, 10U);
  EXPECT_EQ(ends.size(), 2U) << "every death ended the same way; the sweep shows little";
}

TEST_P(CrashSweep, EndsWellWhenTheMachineRebootsInstead) {
  const Layout wanted = prepare();
  const std::string before = layout();
  const std::string after = to_string(wanted);
  for (std::uint64_t call = 2;; ++call) {
    prepare();
    add_fault([&](gpu::FaultRule& rule) {
      rule.call = "any";
      rule.first = call;
      rule.kill = gpu::KillMoment::kAfter;
    });
    change_with_death_possible(wanted);
    if (!driver_->was_killed()) {
      break;
    }
    node_.faults.clear();
    driver_->revive();
    gpu::reboot(node_);

    const auto restored = restore_gpu(*driver_, 0, options());

    const bool none_kept = !restored.ok() && restored.error().kind == ErrorKind::kNotFound;
    ASSERT_TRUE(restored.ok() || none_kept) << restored.error().text();
    ASSERT_THAT(layout(), testing::AnyOf(before, after)) << "killed at call " << call;
  }
}

// Every failing call, one at a time and from then on: old layout, new layout, or a plain statement
// that it is neither; never a wrong success.
TEST_P(CrashSweep, NoFailureEndsInAWrongSuccess) {
  const Layout wanted = prepare();
  const std::string before = layout();
  const std::string after = to_string(wanted);
  using gpu::NvmlCode;
  for (const NvmlCode code :
       {NvmlCode::kInUse, NvmlCode::kInsufficientResources, NvmlCode::kNoPermission,
        NvmlCode::kUnknown, NvmlCode::kResetRequired, NvmlCode::kSuccess}) {
    for (const std::uint64_t count : {1U, 0U}) {
      for (std::uint64_t call = 1; call < 20; ++call) {
        prepare();
        add_fault([&](gpu::FaultRule& rule) {
          rule.call = "write";
          rule.first = call;
          rule.count = count;
          rule.code = code;
        });
        const auto report = apply(GetParam().to);
        ASSERT_TRUE(report.ok()) << report.error().text();
        if (!error_of(*report)) {
          ASSERT_EQ(layout(), after) << "call " << call;
        } else if (report->outcome != TransactionOutcome::kUnclear) {
          ASSERT_THAT(layout(), testing::AnyOf(before, after)) << "call " << call;
        }
        EXPECT_EQ(report->outcome == TransactionOutcome::kUnclear, has_journal());
        node_.faults.clear();
        if (has_journal()) {
          ASSERT_TRUE(recover_gpu(*driver_, 0, options().state).ok());
          ASSERT_THAT(layout(), testing::AnyOf(before, after)) << "call " << call;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Changes, CrashSweep,
                         testing::Values(Change{"", "1g.5gb:7"},
                                         Change{"1g.5gb:7", "1g.5gb:2 2g.10gb 3g.20gb"},
                                         Change{"7g.40gb", "1g.5gb:7"},
                                         Change{"3g.20gb:2", "4g.20gb 3g.20gb"},
                                         Change{"3g.20gb 2g.10gb", "1c.3g.20gb:3 2g.10gb 1g.5gb"},
                                         Change{"1g.5gb+me 1g.10gb 3g.20gb", "7g.40gb"}));

}  // namespace
}  // namespace septet::partition
