#include "agent/replica_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/prng.h"

namespace septet::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Command = SupervisorCommand;

// A supervisor with a clock that the test moves.
class ReplicaSupervisorTest : public ::testing::Test {
 protected:
  std::vector<Command> step(const SupervisorEvent& event) {
    supervisor_.step(now_, event);
    return remember(supervisor_.take_commands());
  }
  std::vector<Command> after(Duration duration) {
    now_ += duration;
    return step(TimePassed{});
  }
  // Moves to the next deadline.
  std::vector<Command> at_deadline() {
    CHECK(supervisor_.next_deadline().has_value());
    now_ = *supervisor_.next_deadline();
    return step(TimePassed{});
  }
  std::vector<Command> answer(bool healthy) { return step(ProbeAnswered{probe_, healthy}); }
  void become_ready() {
    step(StartRequested{});
    step(ProcessStarted{attempt_});
    answer(true);
    ASSERT_EQ(supervisor_.state(), ReplicaState::kReady);
  }
  void fail_to_start() {
    step(ProcessStarted{attempt_});
    step(ProcessEnded{attempt_, "exit code 1"});
  }
  Duration until_deadline() const { return *supervisor_.next_deadline() - now_; }

  SupervisorOptions options_{.failed_probes_allowed = 2,
                             .first_back_off = milliseconds(200),
                             .longest_back_off = seconds(1),
                             .steady_after = seconds(30),
                             .stop_grace = seconds(5)};
  ReplicaSupervisor supervisor_{options_};
  Instant now_{seconds(1000)};
  std::uint64_t attempt_ = 0;
  std::uint64_t probe_ = 0;

 private:
  std::vector<Command> remember(std::vector<Command> commands) {
    for (const Command& command : commands) {
      if (const auto* start = std::get_if<StartProcess>(&command)) {
        attempt_ = start->attempt;
      } else if (const auto* probe = std::get_if<Probe>(&command)) {
        probe_ = probe->probe;
      }
    }
    return commands;
  }
};

TEST_F(ReplicaSupervisorTest, StartsTheProcessWhenAsked) {
  EXPECT_THAT(step(StartRequested{}), ElementsAre(Command(StartProcess{1})));
  EXPECT_EQ(supervisor_.state(), ReplicaState::kStarting);
}

TEST_F(ReplicaSupervisorTest, IsReadyOnceAProbeIsAnsweredAndNotBefore) {
  step(StartRequested{});
  step(ProcessStarted{attempt_});
  EXPECT_THAT(answer(false), IsEmpty());
  ASSERT_EQ(supervisor_.state(), ReplicaState::kStarting);
  at_deadline();

  EXPECT_THAT(answer(true), ElementsAre(Command(AnnounceReady{})));

  EXPECT_EQ(supervisor_.state(), ReplicaState::kReady);
}

TEST_F(ReplicaSupervisorTest, AProcessThatEndsIsAnnouncedGoneAndStartedAgainAfterTheBackOff) {
  become_ready();

  EXPECT_THAT(step(ProcessEnded{attempt_, "signal 9 (Killed)"}),
              ElementsAre(Command(AnnounceGone{})));
  EXPECT_EQ(supervisor_.state(), ReplicaState::kBackingOff);
  EXPECT_THAT(supervisor_.last_failure(), HasSubstr("signal 9 (Killed)"));
  EXPECT_EQ(supervisor_.restarts(), 1u);

  EXPECT_THAT(after(milliseconds(199)), IsEmpty());
  EXPECT_THAT(after(milliseconds(1)), ElementsAre(Command(StartProcess{2})));
}

TEST_F(ReplicaSupervisorTest, TheBackOffDoublesUpToItsLongest) {
  step(StartRequested{});
  std::vector<Duration> waits;
  for (int i = 0; i < 5; ++i) {
    fail_to_start();
    waits.push_back(until_deadline());
    at_deadline();
  }

  EXPECT_THAT(waits, ElementsAre(milliseconds(200), milliseconds(400), milliseconds(800),
                                 seconds(1), seconds(1)));
}

TEST_F(ReplicaSupervisorTest, ASteadyTimeForgetsEarlierFailures) {
  become_ready();
  for (int i = 0; i < 3; ++i) {
    step(ProcessEnded{attempt_, "exit code 1"});
    at_deadline();
    step(ProcessStarted{attempt_});
    answer(true);
  }
  now_ += options_.steady_after;

  step(ProcessEnded{attempt_, "exit code 1"});

  EXPECT_EQ(until_deadline(), options_.first_back_off);
}

TEST_F(ReplicaSupervisorTest, AProcessThatIsNeverReadyIsKilledAndReplaced) {
  step(StartRequested{});
  step(ProcessStarted{attempt_});
  answer(false);

  EXPECT_THAT(after(options_.start_timeout), ::testing::Contains(Command(Kill{1})));
  step(ProcessEnded{attempt_, "signal 9 (Killed)"});

  EXPECT_EQ(supervisor_.state(), ReplicaState::kBackingOff);
  EXPECT_THAT(supervisor_.last_failure(), HasSubstr("not ready within 120 s"));
}

TEST_F(ReplicaSupervisorTest, AFewFailedHealthChecksAreForgiven) {
  become_ready();
  for (unsigned i = 0; i < options_.failed_probes_allowed; ++i) {
    at_deadline();
    answer(false);
  }
  at_deadline();
  answer(true);

  EXPECT_EQ(supervisor_.state(), ReplicaState::kReady);
}

TEST_F(ReplicaSupervisorTest, OneFailedHealthCheckTooManyReplacesTheProcess) {
  become_ready();
  std::vector<Command> commands;
  for (unsigned i = 0; i <= options_.failed_probes_allowed; ++i) {
    at_deadline();
    commands = answer(false);
  }

  EXPECT_THAT(commands, ElementsAre(Command(AnnounceGone{}), Command(Kill{1})));
  step(ProcessEnded{attempt_, "signal 9 (Killed)"});
  EXPECT_THAT(supervisor_.last_failure(), HasSubstr("3 health checks"));
  EXPECT_THAT(at_deadline(), ElementsAre(Command(StartProcess{2})));
}

TEST_F(ReplicaSupervisorTest, StoppingDrainsThenAsksThenKills) {
  become_ready();

  EXPECT_THAT(step(StopRequested{seconds(2)}), ElementsAre(Command(AnnounceGone{})));
  EXPECT_EQ(supervisor_.state(), ReplicaState::kDraining);
  EXPECT_THAT(after(seconds(2)), ElementsAre(Command(AskToEnd{1})));
  EXPECT_THAT(after(seconds(5)), ElementsAre(Command(Kill{1})));
  step(ProcessEnded{1, "signal 9 (Killed)"});

  EXPECT_EQ(supervisor_.state(), ReplicaState::kStopped);
  EXPECT_EQ(supervisor_.next_deadline(), std::nullopt);
  EXPECT_EQ(supervisor_.restarts(), 0u);
}

TEST_F(ReplicaSupervisorTest, AFinishedDrainEndsTheWait) {
  become_ready();
  step(StopRequested{seconds(60)});

  EXPECT_THAT(step(DrainFinished{}), ElementsAre(Command(AskToEnd{1})));
}

TEST_F(ReplicaSupervisorTest, StoppingWhileBackingOffStopsAtOnce) {
  become_ready();
  step(ProcessEnded{attempt_, "exit code 1"});

  EXPECT_THAT(step(StopRequested{}), IsEmpty());

  EXPECT_EQ(supervisor_.state(), ReplicaState::kStopped);
}

TEST_F(ReplicaSupervisorTest, AStopBeforeTheProcessIsThereReachesItOnceItIs) {
  step(StartRequested{});
  step(StopRequested{});

  EXPECT_THAT(step(ProcessStarted{attempt_}), ElementsAre(Command(AskToEnd{1})));
}

TEST_F(ReplicaSupervisorTest, AStartWhileStoppingStartsOnceTheOldProcessIsGone) {
  become_ready();
  step(StopRequested{});

  EXPECT_THAT(step(StartRequested{}), IsEmpty());
  EXPECT_THAT(step(ProcessEnded{1, "exit code 0"}), ElementsAre(Command(StartProcess{2})));
}

TEST_F(ReplicaSupervisorTest, GivesUpAfterTheAllowedStartsIfItWasNeverReady) {
  options_.starts_allowed = 2;
  supervisor_ = ReplicaSupervisor(options_);
  step(StartRequested{});
  step(ProcessStartFailed{attempt_, "cannot start 'septet': no such program"});
  at_deadline();
  step(ProcessStartFailed{attempt_, "cannot start 'septet': no such program"});

  EXPECT_EQ(supervisor_.state(), ReplicaState::kFailed);
  EXPECT_THAT(supervisor_.last_failure(), HasSubstr("no such program"));
}

TEST_F(ReplicaSupervisorTest, NewsOfAnEarlierAttemptChangesNothing) {
  become_ready();
  step(ProcessEnded{attempt_, "exit code 1"});
  at_deadline();
  const std::uint64_t old_probe = probe_;
  step(ProcessStarted{attempt_});

  EXPECT_THAT(step(ProcessEnded{1, "exit code 1"}), IsEmpty());
  EXPECT_THAT(step(ProbeAnswered{old_probe, true}), IsEmpty());
  EXPECT_THAT(step(ProcessStartFailed{1, "late"}), IsEmpty());

  EXPECT_EQ(supervisor_.state(), ReplicaState::kStarting);
}

// Whatever happens in whatever order: never two processes at once, announcements alternate, and a
// stop leads to stopped.
class RandomLife : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomLife, HoldsItsInvariants) {
  Prng random(GetParam());
  ReplicaSupervisor supervisor({.start_timeout = seconds(3), .probe_timeout = seconds(1)});
  Instant now{};
  std::optional<std::uint64_t> running;
  std::optional<std::uint64_t> open_probe;
  bool announced = false;
  const auto carry_out = [&] {
    for (const Command& command : supervisor.take_commands()) {
      if (const auto* start = std::get_if<StartProcess>(&command)) {
        ASSERT_FALSE(running.has_value()) << "a second process";
        if (random.chance(0.2)) {
          supervisor.step(now, ProcessStartFailed{start->attempt, "no"});
        } else {
          running = start->attempt;
          supervisor.step(now, ProcessStarted{start->attempt});
        }
      } else if (const auto* probe = std::get_if<Probe>(&command)) {
        open_probe = probe->probe;
      } else if (std::holds_alternative<AnnounceReady>(command)) {
        ASSERT_FALSE(announced);
        announced = true;
      } else if (std::holds_alternative<AnnounceGone>(command)) {
        ASSERT_TRUE(announced);
        announced = false;
      } else if (std::holds_alternative<Kill>(command) && running) {
        supervisor.step(now, ProcessEnded{*std::exchange(running, std::nullopt), "killed"});
      }
    }
  };
  const auto happen = [&](const SupervisorEvent& event) {
    supervisor.step(now, event);
    for (int round = 0; round < 3; ++round) {
      carry_out();
    }
  };
  for (int i = 0; i < 2000; ++i) {
    now += milliseconds(static_cast<std::int64_t>(random.below(400)));
    switch (random.below(8)) {
      case 0:
        happen(StartRequested{});
        break;
      case 1:
        happen(StopRequested{milliseconds(static_cast<std::int64_t>(random.below(500)))});
        break;
      case 2:
        if (running) {
          happen(ProcessEnded{*std::exchange(running, std::nullopt), "exit code 1"});
        }
        break;
      case 3:
      case 4:
        if (open_probe) {
          happen(ProbeAnswered{*std::exchange(open_probe, std::nullopt), random.chance(0.7)});
        }
        break;
      default:
        happen(TimePassed{});
        break;
    }
    ASSERT_EQ(announced, supervisor.state() == ReplicaState::kReady);
  }
  happen(StopRequested{});
  for (int i = 0; i < 100 && supervisor.next_deadline(); ++i) {
    now = *supervisor.next_deadline();
    happen(TimePassed{});
  }
  EXPECT_EQ(supervisor.state(), ReplicaState::kStopped);
  EXPECT_FALSE(running.has_value());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLife, ::testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace septet::agent
