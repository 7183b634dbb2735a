// nvidia-smi beyond the guide: compute instances, queries, every model, and a driver that
// misbehaves.

#include <gmock/gmock.h>

#include "gpu/gpu_model.h"
#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// nvidia-smi 535 asks for the profiles of its time: none of the variants +gfx, -me, +me.all.
constexpr unsigned kProfilesOf535 = 10;

std::string reason_to_skip() {
  return find_nvidia_smi().empty() ? "no nvidia-smi: scripts/setup brings it"
                                   : foreign_programs_barred();
}

class NvidiaSmiDetails : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = reason_to_skip(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
};

TEST_F(NvidiaSmiDetails, DividesAGpuInstance) {
  const SimulatedMachine machine("A100-SXM4-40GB");
  ASSERT_EQ(machine.nvidia_smi("-mig 1").exit_code, 0);
  ASSERT_EQ(machine.nvidia_smi("mig -cgi 3g.20gb").exit_code, 0);

  EXPECT_THAT(lines_of(machine.nvidia_smi("mig -lcipp").output),
              ElementsAre("GPU  0 GI  1 Profile ID  0 Placements: {0,1,2}:1",
                          "GPU  0 GI  1 Profile ID  1 Placement : {0}:2",
                          "GPU  0 GI  1 Profile ID  2 Placement : {0}:3"));
  EXPECT_THAT(
      lines_of(machine.nvidia_smi("mig -cci 2c.3g.20gb,1c.3g.20gb -gi 1").output),
      ElementsAre("Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 "
                  "using profile MIG 2c.3g.20gb (ID  1)",
                  "Successfully created compute instance ID  1 on GPU  0 GPU instance ID  1 "
                  "using profile MIG 1c.3g.20gb (ID  0)"));
  EXPECT_THAT(
      machine.nvidia_smi("mig -lci").output,
      HasSubstr("|   0      1       MIG 2c.3g.20gb       1         0          0:2     |\n"));
  EXPECT_THAT(
      machine.nvidia_smi("mig -lcip").output,
      HasSubstr("|   0      1       MIG 3g.20gb          2*     0/1           42        2     0"
                "     0   |\n"));
  const Outcome full = machine.nvidia_smi("mig -cci -gi 1");
  EXPECT_EQ(full.exit_code, 23);
  EXPECT_THAT(full.output, HasSubstr("using profile default: Insufficient Resources"));
  EXPECT_THAT(machine.nvidia_smi("-L").output,
              HasSubstr("  MIG 2c.3g.20gb  Device  0: (UUID: MIG-"));
}

TEST_F(NvidiaSmiDetails, AnswersQueries) {
  const SimulatedMachine machine("A100-SXM4-40GB");
  ASSERT_EQ(machine.nvidia_smi("-mig 1").exit_code, 0);
  ASSERT_EQ(machine.nvidia_smi("mig -cgi 14:2 -C").exit_code, 0);
  ASSERT_EQ(
      machine.septet("sim attach --to 0:6:0 --pid 4242 --memory-mib 100 --name /usr/bin/worker")
          .exit_code,
      0);

  EXPECT_THAT(lines_of(machine
                           .nvidia_smi("--query-gpu=name,mig.mode.current,mig.mode.pending,"
                                       "memory.used,memory.total,pci.bus_id --format=csv,noheader")
                           .output),
              ElementsAre("NVIDIA A100-SXM4-40GB, Enabled, Enabled, 100 MiB, 40960 MiB, "
                          "00000000:07:00.0"));
  EXPECT_THAT(lines_of(machine
                           .nvidia_smi("--query-compute-apps=pid,process_name,used_memory "
                                       "--format=csv,noheader")
                           .output),
              ElementsAre("4242, /usr/bin/worker, 100 MiB"));
  const std::string query = machine.nvidia_smi("-q").output;
  EXPECT_THAT(query, HasSubstr("        GPU Instance ID                   : 6\n"));
  EXPECT_THAT(query, HasSubstr("                Multiprocessor count      : 28\n"));
  EXPECT_THAT(query, HasSubstr("            Total                         : 9856 MiB\n"));
}

TEST_F(NvidiaSmiDetails, WritesXml) {
  const SimulatedMachine machine("A100-SXM4-40GB");
  ASSERT_EQ(machine.nvidia_smi("-mig 1").exit_code, 0);
  ASSERT_EQ(machine.nvidia_smi("mig -cgi 14:2 -C").exit_code, 0);

  const std::string xml = machine.nvidia_smi("-q -x").output;

  for (const char* piece :
       {"<current_mig>Enabled</current_mig>", "<gpu_instance_id>6</gpu_instance_id>",
        "<compute_instance_id>0</compute_instance_id>",
        "<multiprocessor_count>28</multiprocessor_count>", "<total>9856 MiB</total>"}) {
    EXPECT_THAT(xml, HasSubstr(piece));
  }
}

TEST_F(NvidiaSmiDetails, ListsTheProfilesOfEveryModel) {
  for (const gpu::GpuModel& model : gpu::gpu_models()) {
    const SimulatedMachine machine(model.key);
    const Outcome enabled = machine.nvidia_smi("-mig 1");
    EXPECT_EQ(enabled.exit_code, 0) << model.key;
    if (!model.mig.supported) {
      EXPECT_THAT(enabled.output,
                  HasSubstr("Unable to enable MIG Mode for GPU 00000000:07:00.0: Not "
                            "Supported\nTreating as warning and moving on.\n"));
      continue;
    }
    const std::string list = machine.nvidia_smi("mig -lgip").output;
    for (const gpu::GpuInstanceProfile& profile : model.profiles) {
      if (profile.nvml_enum < kProfilesOf535) {
        EXPECT_THAT(list, HasSubstr("MIG " + profile.name + " ")) << model.key;
      }
    }
  }
}

TEST_F(NvidiaSmiDetails, SeesAMixedNode) {
  const SimulatedMachine empty("T4");
  const std::string file = empty.write_file(
      "node.yaml",
      "version: 1\ngpus:\n  - {model: H100-SXM5-80GB, count: 2, mig: enabled}\n  - {model: T4}\n");
  const SimulatedMachine machine(file);

  const auto list = lines_of(machine.nvidia_smi("-L").output);
  const Outcome created = machine.nvidia_smi("mig -i 1 -cgi 9 -C");

  ASSERT_EQ(list.size(), 3U);
  EXPECT_THAT(list[1], HasSubstr("GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-"));
  EXPECT_THAT(list[2], HasSubstr("GPU 2: Tesla T4 (UUID: GPU-"));
  EXPECT_EQ(created.exit_code, 0);
  EXPECT_THAT(created.output, HasSubstr("on GPU  1 using profile MIG 3g.40gb (ID  9)"));
  EXPECT_THAT(machine.nvidia_smi("mig -i 0 -lgi").output, HasSubstr("No GPU instances found"));
}

TEST_F(NvidiaSmiDetails, ShowsTheFaultsOfThePlan) {
  const SimulatedMachine machine("A100-SXM4-40GB");
  const std::string plan = machine.write_file("faults.yaml", R"(
version: 1
faults:
  - {call: create_compute_instance, nth: 2, return: insufficient_resources}
  - {call: set_mig_mode, nth: 2, activation: reset_required}
)");
  ASSERT_EQ(machine.nvidia_smi("-mig 1").exit_code, 0);
  ASSERT_EQ(machine.septet("sim fault --plan " + plan).exit_code, 0);

  const Outcome created = machine.nvidia_smi("mig -cgi 19,19 -C");
  EXPECT_EQ(created.exit_code, 23);
  EXPECT_EQ(machine.nvidia_smi("mig -dci").exit_code, 0);
  EXPECT_EQ(machine.nvidia_smi("mig -dgi").exit_code, 0);
  EXPECT_THAT(machine.nvidia_smi("-mig 0").output, HasSubstr("Disabled MIG Mode"));
  const Outcome pending = machine.nvidia_smi("-mig 1");
  EXPECT_EQ(pending.exit_code, 0);
  EXPECT_THAT(pending.output, HasSubstr("MIG mode is in pending enable state"));
  EXPECT_THAT(pending.output, HasSubstr("Reboot the system"));
}

TEST_F(NvidiaSmiDetails, LosesAGpuByPlanAndGetsItBackByAReboot) {
  const SimulatedMachine machine("A100-SXM4-40GB");
  const std::string plan = machine.write_file(
      "faults.yaml", "version: 1\nfaults: [{call: set_mig_mode, loses-gpu: true, xid: 79}]\n");
  ASSERT_EQ(machine.septet("sim fault --plan " + plan).exit_code, 0);

  const Outcome lost = machine.nvidia_smi("-mig 1");
  EXPECT_EQ(lost.exit_code, 15);
  EXPECT_THAT(lost.output, HasSubstr("GPU is lost"));
  ASSERT_EQ(machine.septet("sim reboot").exit_code, 0);
  EXPECT_EQ(machine.nvidia_smi("-L").exit_code, 0);
  EXPECT_THAT(machine.nvidia_smi("-mig 1").output, HasSubstr("Enabled MIG Mode"));
}

TEST_F(NvidiaSmiDetails, OnlyRootMayWriteWhereTheNodeSaysSo) {
  const SimulatedMachine empty("T4");
  const std::string file =
      empty.write_file("node.yaml", "version: 1\nrequires-root: true\ngpus: [{model: A30}]\n");
  const SimulatedMachine machine(file);

  const Outcome enabled = machine.nvidia_smi("-mig 1");

  const bool is_root = machine.run("test $(id -u) = 0").exit_code == 0;
  EXPECT_EQ(enabled.exit_code, is_root ? 0 : 4) << enabled.output;
}

TEST_F(NvidiaSmiDetails, SeesNoNodeWithoutState) {
  const SimulatedMachine machine("A30");

  const Outcome list = machine.run("SEPTET_SIMNVML_STATE= " + find_nvidia_smi() + " -L");

  EXPECT_EQ(list.exit_code, 9);
  EXPECT_THAT(list.output, Not(HasSubstr("GPU 0")));
}

}  // namespace
}  // namespace septet::acceptance
