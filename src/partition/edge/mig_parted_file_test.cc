#include "partition/edge/mig_parted_file.h"

#include <gmock/gmock.h>

#include "gpu/simulated_driver.h"
#include "gpu/simulated_instances.h"

namespace septet::partition {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig = R"(version: v1
mig-configs:
  all-disabled:
  - devices: all
    mig-enabled: false
  all-balanced:
  - device-filter: "0x20B010DE"
    devices: all
    mig-enabled: true
    mig-devices:
      "1g.5gb": 2
      "2g.10gb": 1
      "3g.20gb": 1
  - device-filter: ["0x233510DE", "0x233B10DE"]
    devices: [1, 2]
    mig-enabled: true
    mig-devices: {"1c.3g.71gb": 3}
)";

gpu::GpuState state_of(const std::string& model, unsigned index = 0) {
  gpu::SimulatedNode node = *gpu::make_simulated_node(model);
  gpu::GpuState state = gpu::state_of(node.gpus[0]);
  state.index = index;
  return state;
}

std::string error_of(const std::string& text) {
  const auto config = read_mig_parted(text, "f.yaml");
  EXPECT_FALSE(config.ok());
  return config.ok() ? std::string() : config.error().message;
}

TEST(MigParted, FindsWhatAGpuShallHave) {
  const auto config = read_mig_parted(kConfig, "f.yaml");
  ASSERT_TRUE(config.ok()) << config.error().text();
  const auto entries = find_label(*config, "all-balanced");
  ASSERT_TRUE(entries.ok());

  const auto a100 = goal_for(**entries, state_of("A100-SXM4-40GB"));
  const auto h200 = goal_for(**entries, state_of("H200", 1));

  ASSERT_TRUE(a100);
  EXPECT_EQ(a100->counts, (DeviceCounts{{"1g.5gb", 2}, {"2g.10gb", 1}, {"3g.20gb", 1}}));
  ASSERT_TRUE(h200);
  EXPECT_EQ(h200->counts, (DeviceCounts{{"1c.3g.71gb", 3}}));
  EXPECT_FALSE(goal_for(**entries, state_of("H200", 0)));
}

TEST(MigParted, NamesTheLabelsThatExist) {
  const auto config = read_mig_parted(kConfig, "f.yaml");
  ASSERT_TRUE(config.ok());

  const auto found = find_label(*config, "all-balancd");

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(found.error().hint, HasSubstr("did you mean all-balanced?"));
}

TEST(MigParted, RefusesWithFileAndLine) {
  EXPECT_THAT(error_of("version: v2\nmig-configs: {a: []}\n"), HasSubstr("f.yaml:1: "));
  EXPECT_THAT(error_of("version: v1\nmig-configs:\n  a:\n  - devices: all\n    color: red\n"),
              HasSubstr("f.yaml:5: unknown field 'color'"));
  EXPECT_THAT(error_of("version: v1\nmig-configs:\n  a:\n  - devices: all\n    mig-enabled: true\n"
                       "    mig-devices: {\"1g.5gb\": -1}\n"),
              HasSubstr("f.yaml:6: the count of 1g.5gb"));
  EXPECT_THAT(error_of("version: v1\nmig-configs:\n  a:\n  - devices: all\n    mig-enabled: true\n"
                       "    mig-devices: {\"1g.5gb\": 99999999999}\n"),
              HasSubstr("f.yaml:6: "));
  EXPECT_THAT(error_of("version: v1\nmig-configs:\n  a:\n  - devices: [0, 0]\n"
                       "    mig-enabled: false\n"),
              HasSubstr("f.yaml:4: GPU 0 is named twice"));
  EXPECT_THAT(error_of("version: v1\nmig-configs:\n  a:\n  - devices: all\n    mig-enabled: true\n"
                       "    mig-devices: {\"1g\": 1}\n"),
              HasSubstr("no MIG profile name"));
  EXPECT_THAT(error_of("version: v1\nmig-configs: [\n"), HasSubstr("f.yaml:"));
  EXPECT_THAT(error_of(""), HasSubstr("f.yaml:"));
}

TEST(MigParted, ReadsWhatItExports) {
  gpu::SimulatedNode node = *gpu::make_simulated_node("A100-SXM4-40GB");
  node.gpus[0].mig_current = node.gpus[0].mig_pending = true;
  gpu::GpuInstance gi;
  gpu::ComputeInstance ci;
  ASSERT_EQ(gpu::create_gpu_instance(node.gpus[0], gpu::ProfileId(9), std::nullopt, gi),
            gpu::NvmlCode::kSuccess);
  ASSERT_EQ(gpu::create_compute_instance(node.gpus[0], gi.id, gpu::ProfileId(0), std::nullopt, ci),
            gpu::NvmlCode::kSuccess);
  const gpu::GpuState state = gpu::state_of(node.gpus[0]);
  const std::vector<MigPartedEntry> entries = export_entries({state});

  for (const std::string& text : {write_yaml("current", entries), write_json("current", entries)}) {
    const auto config = read_mig_parted(text, "out");
    ASSERT_TRUE(config.ok()) << config.error().text() << text;
    const auto found = find_label(*config, "");
    ASSERT_TRUE(found.ok());
    const auto goal = goal_for(**found, state);
    ASSERT_TRUE(goal);
    EXPECT_EQ(goal->counts, (DeviceCounts{{"1c.3g.20gb", 1}}));
    EXPECT_FALSE(difference(*goal, state));
  }
}

TEST(MigParted, SaysWhatIsDifferent) {
  const gpu::GpuState state = state_of("A100-SXM4-40GB");

  const auto difference_text = difference({gpu::MigMode::kEnabled, {{"1g.5gb", 7}}, 1}, state);

  ASSERT_TRUE(difference_text);
  EXPECT_THAT(*difference_text, HasSubstr("MIG is off"));
}

TEST(MigParted, CheckpointsComeBack) {
  gpu::SimulatedNode node = *gpu::make_simulated_node("A100-SXM4-40GB");
  node.gpus[0].mig_current = node.gpus[0].mig_pending = true;
  gpu::GpuInstance gi;
  ASSERT_EQ(gpu::create_gpu_instance(node.gpus[0], gpu::ProfileId(9), std::nullopt, gi),
            gpu::NvmlCode::kSuccess);
  const std::vector<gpu::GpuState> states = {gpu::state_of(node.gpus[0])};

  const auto devices = read_checkpoint(write_checkpoint(states), "c.json", states);

  ASSERT_TRUE(devices.ok()) << devices.error().text();
  ASSERT_EQ(devices->size(), 1U);
  EXPECT_EQ(devices->front().layout, layout_of(states[0]));
}

TEST(MigParted, RefusesAForeignCheckpoint) {
  const std::vector<gpu::GpuState> states = {state_of("A100-SXM4-40GB")};

  EXPECT_FALSE(read_checkpoint("{", "c.json", states).ok());
  EXPECT_FALSE(read_checkpoint("{\"Version\":\"v2\"}", "c.json", states).ok());
  gpu::GpuState other = states[0];
  other.uuid = gpu::GpuUuid("GPU-other");
  EXPECT_FALSE(read_checkpoint(write_checkpoint({other}), "c.json", states).ok());
}

}  // namespace
}  // namespace septet::partition
