#include <gmock/gmock.h>

#include <set>

#include "gpu/simulated_instances.h"
#include "partition/edge/apply_testing.h"
#include "partition/edge/run_transaction.h"

namespace septet::partition {
namespace {

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
