// septet's layout verbs as a user types them, on a simulated node.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

using testing::HasSubstr;

class LayoutVerbs : public testing::Test {
 protected:
  explicit LayoutVerbs(std::string node = "A100-SXM4-40GB")
      : node_(std::move(node)), machine_(node_) {}

  Outcome septet(const std::string& words) const {
    return machine_.run(fmt::format("env SEPTET_STATE_DIR='{}/state' {} --simulate '{}' {}",
                                    machine_.folder(), SEPTET_PROGRAM, node_, words));
  }
  Outcome applied(const std::string& words) const {
    Outcome outcome = septet("apply " + words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return outcome;
  }

  std::string node_;
  SimulatedMachine machine_;
};

class LayoutVerbsOnTwo : public LayoutVerbs {
 protected:
  LayoutVerbsOnTwo() : LayoutVerbs("A100-SXM4-40GBx2") {}
};

TEST_F(LayoutVerbs, ChangeOnlyWhatMustChange) {
  applied("1g.5gb:7");

  const Outcome outcome = applied("1g.5gb:2 2g.10gb 3g.20gb -o json");

  const auto report = nlohmann::json::parse(outcome.output);
  unsigned stayed = 0;
  for (const auto& device : report.at("mig_devices")) {
    stayed += device.at("before") == device.at("after") ? 1 : 0;
  }
  EXPECT_EQ(stayed, 2U);
  EXPECT_EQ(report.at("gpus").at(0).at("driver_calls"), 14);
}

TEST_F(LayoutVerbs, LeaveABusyInstanceRunning) {
  applied("1g.5gb:7");
  ASSERT_EQ(septet("sim attach --to 0:11 --pid $PPID --name worker").exit_code, 0);

  const Outcome plan = septet("plan 1g.5gb:2 2g.10gb 3g.20gb --explain");
  const Outcome refused = septet("apply 7g.40gb");
  applied("1g.5gb:2 2g.10gb 3g.20gb");

  EXPECT_THAT(plan.output, HasSubstr("[! 1g.5gb]"));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.output, HasSubstr("pid "));
}

TEST_F(LayoutVerbs, NameAlternativesAndTouchNothing) {
  applied("1g.5gb:7");
  const std::string before = septet("checkpoint").output;

  const Outcome refused = septet("apply 4g.20gb 2g.10gb:2");

  EXPECT_EQ(refused.exit_code, 8);
  EXPECT_THAT(refused.output, HasSubstr("nearest that fit"));
  EXPECT_EQ(septet("checkpoint").output, before);
}

TEST_F(LayoutVerbs, ExportWhatApplyAndAssertRead) {
  applied("3g.20gb 1c.2g.10gb:2 1g.5gb");
  const std::string file = machine_.write_file("layout.yaml", septet("export").output);
  ASSERT_EQ(septet("reset").exit_code, 0);
  EXPECT_EQ(septet("assert -f " + file).exit_code, 1);

  applied("-f " + file);

  EXPECT_EQ(septet("assert -f " + file).exit_code, 0);
}

TEST_F(LayoutVerbs, RestoreACheckpoint) {
  applied("3g.20gb@0 2g.10gb@4");
  const std::string before = septet("checkpoint").output;
  const std::string file = machine_.write_file("checkpoint.json", before);
  ASSERT_EQ(septet("reset --mig-off").exit_code, 0);

  const Outcome restored = septet("restore -f " + file);

  EXPECT_EQ(restored.exit_code, 0) << restored.output;
  EXPECT_EQ(septet("checkpoint").output, before);
}

TEST_F(LayoutVerbs, RestoreAfterAReboot) {
  applied("3g.20gb 1g.5gb:3");
  const std::string before = septet("checkpoint").output;
  ASSERT_EQ(septet("sim reboot").exit_code, 0);
  ASSERT_NE(septet("checkpoint").output, before);

  EXPECT_EQ(septet("restore --time-limit 60").exit_code, 0);

  EXPECT_EQ(septet("checkpoint").output, before);
}

TEST_F(LayoutVerbs, RefuseABadFileWithItsLine) {
  const std::string file = machine_.write_file("bad.yaml", "version: v3\nmig-configs: {a: []}\n");

  const Outcome refused = septet("apply -f " + file + " -c a");

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("bad.yaml:1: the version must be v1"));
}

TEST_F(LayoutVerbs, ChangeNothingOnADryRun) {
  const Outcome outcome = septet("--dry-run apply 1g.5gb:7");

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("create"));
  EXPECT_THAT(septet("checkpoint").output, HasSubstr("\"MigMode\":0"));
}

TEST_F(LayoutVerbs, DefragmentIdleInstances) {
  applied("1g.5gb@0");

  const Outcome plan = septet("plan --defragment");
  ASSERT_EQ(septet("apply --defragment").exit_code, 0);

  EXPECT_THAT(plan.output, HasSubstr("destroy"));
  EXPECT_THAT(septet("checkpoint").output, HasSubstr("\"Start\":6"));
}

TEST_F(LayoutVerbsOnTwo, AskWhichGpuIsMeant) { EXPECT_EQ(septet("apply 1g.5gb").exit_code, 2); }

TEST_F(LayoutVerbsOnTwo, PackAndSpread) {
  const Outcome packed = septet("plan 1g.5gb:8 --pack");
  const Outcome spread = septet("plan 1g.5gb:8 --spread");

  EXPECT_THAT(packed.output, HasSubstr("GPU 1: keep 0, destroy 0, create 1;"));
  EXPECT_THAT(spread.output, HasSubstr("GPU 1: keep 0, destroy 0, create 4;"));
}

}  // namespace
}  // namespace septet::acceptance
