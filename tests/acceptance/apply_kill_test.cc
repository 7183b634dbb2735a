// Real processes: septet apply is killed (SIGKILL) at every NVML call that changes something,
// before and after its effect; septet restore then ends in the old layout or the new one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

constexpr const char* kOld = "1g.5gb:7";
constexpr const char* kNew = "1g.5gb:2 2g.10gb 3g.20gb";
constexpr unsigned kMostCalls = 40;

// Half of the calls each, so that one test stays short.
struct Half {
  const char* moment;
  unsigned first_call;
};
std::ostream& operator<<(std::ostream& out, const Half& half) {
  return out << half.moment << half.first_call;
}

class ApplyKilled : public testing::TestWithParam<Half> {
 protected:
  ApplyKilled() : machine_("A100-SXM4-40GB") {}

  // Every line of words is one septet command; what it printed and its exit code follow each other.
  Outcome septet_lines(const std::vector<std::string>& lines) const {
    std::string script = fmt::format("export SEPTET_STATE_DIR='{}/state'; ", machine_.folder());
    for (const std::string& words : lines) {
      script +=
          fmt::format("{} --simulate A100-SXM4-40GB {}; echo \"rc=$?\"; ", SEPTET_PROGRAM, words);
    }
    return machine_.run("sh -c '" + script + "'");
  }
  // Node and journals as they were saved: cheaper than laying out anew for every kill.
  void save() const {
    machine_.run(fmt::format("cp -a {0}/sim {0}/sim.saved && cp -a {0}/state {0}/state.saved",
                             machine_.folder()));
  }
  void go_back_to_saved() const {
    machine_.run(
        fmt::format("rm -rf {0}/sim {0}/state && cp -a {0}/sim.saved {0}/sim && "
                    "cp -a {0}/state.saved {0}/state",
                    machine_.folder()));
  }
  std::string kill_plan(unsigned call) const {
    return machine_.write_file(
        "faults.yaml", fmt::format("version: 1\nfaults:\n- call: write\n  nth: {}\n  kill: {}\n",
                                   call, GetParam().moment));
  }
  // What checkpoint prints: profiles and placements, no ids and no UUIDs of MIG devices.
  static std::string layout_in(const std::string& output) {
    for (const std::string& line : lines_of(output)) {
      if (line.starts_with("{\"Version\"")) {
        return line;
      }
    }
    return "no layout in: " + output;
  }

  SimulatedMachine machine_;
};

TEST_P(ApplyKilled, EndsInTheOldOrTheNewLayout) {
  const std::string apply_new = fmt::format("apply {}", kNew);
  const std::string before =
      layout_in(septet_lines({fmt::format("apply {}", kOld), "checkpoint"}).output);
  save();
  const std::string after = layout_in(septet_lines({apply_new, "checkpoint"}).output);
  ASSERT_NE(before, after);

  std::set<std::string> ends;
  unsigned killed = 0;
  for (unsigned call = GetParam().first_call; call < kMostCalls; call += 2) {
    go_back_to_saved();
    const std::string set_faults = "sim fault A100-SXM4-40GB --plan ";
    const Outcome outcome = septet_lines(
        {set_faults + kill_plan(call), apply_new, set_faults + "none", "restore", "checkpoint"});
    if (outcome.output.find("rc=137") == std::string::npos) {
      EXPECT_EQ(layout_in(outcome.output), after) << outcome.output;
      break;
    }
    ++killed;
    const std::string end = layout_in(outcome.output);
    EXPECT_THAT(end, testing::AnyOf(before, after)) << "killed at call " << call;
    ends.insert(end);
  }
  EXPECT_GE(killed, 7U);
  EXPECT_EQ(ends.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Moments, ApplyKilled,
                         testing::Values(Half{"before", 1}, Half{"before", 2}, Half{"after", 1},
                                         Half{"after", 2}),
                         [](const auto& each) {
                           return fmt::format("{}{}", each.param.moment, each.param.first_call);
                         });

}  // namespace
}  // namespace septet::acceptance
