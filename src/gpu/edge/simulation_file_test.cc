#include "gpu/edge/simulation_file.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"

namespace septet::gpu {
namespace {

using ::testing::HasSubstr;

TEST(SimulationFile, ReadsAMixedNode) {
  const auto node = parse_node(R"(
version: 1
driver: 550.163.01
cuda: "12.4"
seed: 7
requires-root: true
answers-with-mig-off: false
gpus:
  - model: A100-SXM4-40GB
    count: 2
    mig: enabled
    placement: first
  - {model: T4}
  - model: A30
    virtual-machine: true
    profiles: [{id: 14, reported-id: 19, name: 1g.3gb, reported-max: 7}]
faults:
  - {call: write, nth: 2, return: 19}
)",
                               "node.yaml");

  ASSERT_TRUE(node.ok()) << node.error().text();
  ASSERT_EQ(node->gpus.size(), 4U);
  EXPECT_TRUE(node->gpus[1].mig_current);
  EXPECT_EQ(node->gpus[1].config.placement, PlacementPolicy::kFirst);
  EXPECT_EQ(model_of(node->gpus[2]).key, "T4");
  EXPECT_TRUE(node->gpus[3].config.virtual_machine);
  EXPECT_EQ(profiles_of(node->gpus[3])[0].id, ProfileId(19));
  EXPECT_EQ(node->config.driver_version, "550.163.01");
  EXPECT_TRUE(node->config.requires_root);
  ASSERT_EQ(node->faults.size(), 1U);
  EXPECT_EQ(node->faults[0].code, NvmlCode::kInUse);
  EXPECT_EQ(node->faults[0].first, 2U);
}

TEST(SimulationFile, ReadsEveryWordOfAFault) {
  const auto faults = parse_faults(R"(
version: 1
faults:
  - call: destroy_gpu_instance
    gpu: 1
    gpu-instance: 7
    nth: 3
    count: forever
    probability: 0.5
    return: in_use
    takes-effect: true
    activation: reset_required
    delay-ms: 250
    kill: after
    loses-gpu: true
    xid: 79
    foreign: {create: 19, destroy: 8}
)",
                                   "faults.yaml");

  ASSERT_TRUE(faults.ok()) << faults.error().text();
  FaultRule expected;
  expected.call = "destroy_gpu_instance";
  expected.gpu = 1;
  expected.gpu_instance = 7;
  expected.first = 3;
  expected.count = 0;
  expected.probability = 0.5;
  expected.code = NvmlCode::kInUse;
  expected.takes_effect = true;
  expected.activation = NvmlCode::kResetRequired;
  expected.delay = milliseconds(250);
  expected.kill = KillMoment::kAfter;
  expected.loses_gpu = true;
  expected.xid = 79;
  expected.foreign = {19, 8};
  EXPECT_EQ(faults->at(0), expected);
}

struct BadFile {
  const char* text;
  const char* message;
};

TEST(SimulationFile, RefusesBadNodesWithFileAndLine) {
  const BadFile files[] = {
      {"version: 2\ngpus: [{model: A30}]\n", "node.yaml:1: 'version: 1' is needed"},
      {"gpus: [{model: A30}]\n", "node.yaml:1: 'version: 1' is needed"},
      {"version: 1\n", "'gpus' must be a list"},
      {"version: 1\ngpus: []\n", "node.yaml:2: 'gpus' must be a list"},
      {"version: 1\ngpus:\n  - modle: A30\n",
       "node.yaml:3: unknown word 'modle'; did you mean 'model'?"},
      {"version: 1\ngpus:\n  - model: A31\n", "node.yaml:3: no GPU model 'A31'"},
      {"version: 1\ngpus:\n  - model: A30\n    count: -1\n", "node.yaml:4: 'count' must be"},
      {"version: 1\ngpus:\n  - model: A30\n    count: 99\n", "node.yaml:4: 'count' must be"},
      {"version: 1\ngpus:\n  - model: T4\n    mig: enabled\n", "node.yaml:4: T4 has no MIG"},
      {"version: 1\ngpus:\n  - model: A30\n    mig: maybe\n", "'mig' must be one of enabled"},
      {"version: 1\ngpus:\n  - model: A30\n    profiles: [{id: 99}]\n", "A30 has no profile 99"},
      {"version: 1\ngpus: [\n", "node.yaml:"},
      {"just words\n", "node.yaml:1: expected a mapping"},
      {"", "node.yaml:"},
  };
  for (const BadFile& file : files) {
    const auto node = parse_node(file.text, "node.yaml");
    ASSERT_FALSE(node.ok()) << file.text;
    EXPECT_EQ(node.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(node.error().message, HasSubstr(file.message)) << file.text;
  }
}

TEST(SimulationFile, RefusesBadFaults) {
  const BadFile files[] = {
      {"version: 1\nfaults: [{return: in_use}]\n", "a fault needs 'call'"},
      {"version: 1\nfaults: [{call: write, return: broken}]\n", "'return' must be an NVML code"},
      {"version: 1\nfaults: [{call: write, probability: 2}]\n",
       "'probability' must be from 0 to 1"},
      {"version: 1\nfaults: [{call: write, kill: often}]\n",
       "'kill' must be one of before and after"},
      {"version: 1\nfaults: 3\n", "'faults' must be a list"},
      {"version: 1\n", "'faults' is needed"},
  };
  for (const BadFile& file : files) {
    const auto faults = parse_faults(file.text, "faults.yaml");
    ASSERT_FALSE(faults.ok()) << file.text;
    EXPECT_THAT(faults.error().message, HasSubstr(file.message)) << file.text;
  }
}

TEST(SimulationFile, MissingFileIsNotFound) {
  EXPECT_EQ(read_node_file("/nowhere/node.yaml").error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(is_simulation_file("node.yaml"));
  EXPECT_TRUE(is_simulation_file("./node"));
  EXPECT_FALSE(is_simulation_file("A100-SXM4-40GBx2"));
}

}  // namespace
}  // namespace septet::gpu
