// The guide's commands, typed to NVIDIA's own nvidia-smi, on the simulated node. The expected text
// is what the program prints on hardware (version 535).

#include <gmock/gmock.h>

#include <set>

#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class NvidiaSmi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_nvidia_smi().empty()) {
      GTEST_SKIP()
          << "no nvidia-smi: scripts/setup brings it (Debian package nvidia-smi, non-free)";
    }
    if (!foreign_programs_barred().empty()) {
      GTEST_SKIP() << foreign_programs_barred();
    }
  }

  // MIG on and seven 1g.5gb with a compute instance each.
  void lay_out_seven() {
    ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);
    ASSERT_EQ(machine_.nvidia_smi("mig -cgi 19,19,19,19,19,19,19 -C").exit_code, 0);
  }

  SimulatedMachine machine_{"A100-SXM4-40GB"};
};

TEST_F(NvidiaSmi, ListsTheGpu) {
  const Outcome list = machine_.nvidia_smi("-L");

  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.output, ::testing::MatchesRegex(
                               "GPU 0: NVIDIA A100-SXM4-40GB \\(UUID: GPU-[0-9a-f-]{36}\\)\n"));
}

TEST_F(NvidiaSmi, ShowsTheScreenWithMigDisabled) {
  const Outcome screen = machine_.nvidia_smi("");

  EXPECT_EQ(screen.exit_code, 0) << screen.output;
  EXPECT_THAT(screen.output,
              HasSubstr("|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |"));
  EXPECT_THAT(screen.output, HasSubstr("0MiB / 40960MiB"));
  EXPECT_THAT(screen.output, HasSubstr("|             Disabled |"));
  EXPECT_THAT(screen.output, HasSubstr("|  No running processes found "));
}

TEST_F(NvidiaSmi, FindsNoMigDeviceBeforeTheModeIsOn) {
  const Outcome list = machine_.nvidia_smi("mig -lgip");

  EXPECT_EQ(list.exit_code, 6);
  EXPECT_EQ(list.output, "No MIG-enabled devices found.\n");
}

TEST_F(NvidiaSmi, EnablesMigMode) {
  const Outcome enabled = machine_.nvidia_smi("-mig 1");

  EXPECT_EQ(enabled.exit_code, 0);
  EXPECT_THAT(lines_of(enabled.output),
              ElementsAre("Enabled MIG Mode for GPU 00000000:07:00.0", "All done."));
  EXPECT_THAT(machine_.nvidia_smi("").output, HasSubstr("|              Enabled |"));
}

TEST_F(NvidiaSmi, ListsTheProfiles) {
  ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);

  const Outcome list = machine_.nvidia_smi("mig -lgip");

  EXPECT_EQ(list.exit_code, 0);
  for (const char* row :
       {"|   0  MIG 1g.5gb        19     7/7        4.75       No     14     0     0   |\n"
        "|                                                             1     0     0   |\n",
        "|   0  MIG 1g.5gb+me     20     1/1        4.75       No     14     1     0   |\n"
        "|                                                             1     1     1   |\n",
        "|   0  MIG 1g.10gb       15     4/4        9.62       No     14     1     0   |\n",
        "|   0  MIG 2g.10gb       14     3/3        9.62       No     28     1     0   |\n",
        "|   0  MIG 3g.20gb        9     2/2        19.50      No     42     2     0   |\n",
        "|   0  MIG 4g.20gb        5     1/1        19.50      No     56     2     0   |\n",
        "|   0  MIG 7g.40gb        0     1/1        39.25      No     98     5     0   |\n"}) {
    EXPECT_THAT(list.output, HasSubstr(row));
  }
}

TEST_F(NvidiaSmi, ListsThePlacements) {
  ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);

  EXPECT_THAT(lines_of(machine_.nvidia_smi("mig -lgipp").output),
              ElementsAre("GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1",
                          "GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1",
                          "GPU  0 Profile ID 15 Placements: {0,2,4,6}:2",
                          "GPU  0 Profile ID 14 Placements: {0,2,4}:2",
                          "GPU  0 Profile ID  9 Placements: {0,4}:4",
                          "GPU  0 Profile ID  5 Placement : {0}:4",
                          "GPU  0 Profile ID  0 Placement : {0}:8"));
}

TEST_F(NvidiaSmi, CreatesSevenInstancesWithComputeInstances) {
  ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);

  const Outcome created = machine_.nvidia_smi("mig -cgi 19,19,19,19,19,19,19 -C");

  EXPECT_EQ(created.exit_code, 0);
  const auto lines = lines_of(created.output);
  ASSERT_EQ(lines.size(), 14U);
  EXPECT_EQ(lines[0],
            "Successfully created GPU instance ID  9 on GPU  0 using profile MIG 1g.5gb (ID 19)");
  EXPECT_EQ(
      lines[1],
      "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  9 using profile "
      "MIG 1g.5gb (ID  0)");
  std::set<std::string> devices;
  for (const std::string& line : lines_of(machine_.nvidia_smi("-L").output)) {
    if (line.starts_with("  MIG 1g.5gb      Device ")) {
      devices.insert(line.substr(line.find("UUID: ")));
    }
  }
  EXPECT_EQ(devices.size(), 7U);
}

TEST_F(NvidiaSmi, ShowsSevenMigDevicesOnTheScreen) {
  lay_out_seven();

  const std::string screen = machine_.nvidia_smi("").output;

  EXPECT_THAT(screen, HasSubstr("| MIG devices: "));
  EXPECT_THAT(screen,
              HasSubstr("|  0    7   0   0  |               0MiB /  4864MiB  | 14      0 |"));
  EXPECT_THAT(screen,
              HasSubstr("|  0   14   0   6  |               0MiB /  4864MiB  | 14      0 |"));
}

TEST_F(NvidiaSmi, ListsTheInstances) {
  ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);
  ASSERT_EQ(machine_.nvidia_smi("mig -cgi 9:4,14:2").exit_code, 0);

  const std::string list = machine_.nvidia_smi("mig -lgi").output;

  EXPECT_THAT(list, HasSubstr("|   0  MIG 2g.10gb         14        6          2:2     |\n"));
  EXPECT_THAT(list, HasSubstr("|   0  MIG 3g.20gb          9        1          4:4     |\n"));
}

TEST_F(NvidiaSmi, RefusesAnEighthInstance) {
  lay_out_seven();

  const Outcome eighth = machine_.nvidia_smi("mig -cgi 19");

  EXPECT_EQ(eighth.exit_code, 23);
  EXPECT_THAT(
      lines_of(eighth.output),
      ElementsAre(
          "Unable to create a GPU instance on GPU  0 using profile 19: Insufficient Resources",
          "Failed to create GPU instances: Insufficient Resources"));
}

TEST_F(NvidiaSmi, RefusesToDestroyABusyInstance) {
  lay_out_seven();
  ASSERT_EQ(machine_.septet("sim attach --to 0:8:0 --pid 4242 --memory-mib 1234").exit_code, 0);

  const Outcome compute = machine_.nvidia_smi("mig -dci -gi 8");
  const Outcome whole = machine_.nvidia_smi("mig -dgi -gi 8");

  EXPECT_EQ(compute.exit_code, 19);
  EXPECT_THAT(
      lines_of(compute.output),
      ElementsAre("Unable to destroy compute instance ID  0 from GPU  0 GPU instance ID  8: "
                  "In use by another client",
                  "Failed to destroy compute instances: In use by another client"));
  EXPECT_EQ(whole.exit_code, 19);
  EXPECT_THAT(whole.output, HasSubstr("Unable to destroy GPU instance ID  8 from GPU  0: In use"));
}

TEST_F(NvidiaSmi, DestroysEverythingAndDisablesTheMode) {
  lay_out_seven();

  const Outcome compute = machine_.nvidia_smi("mig -dci");
  const Outcome instances = machine_.nvidia_smi("mig -dgi");
  const Outcome disabled = machine_.nvidia_smi("-mig 0");

  EXPECT_EQ(lines_of(compute.output).size(), 7U);
  EXPECT_THAT(compute.output, HasSubstr("Successfully destroyed compute instance ID  0 from GPU  0 "
                                        "GPU instance ID  7\n"));
  EXPECT_EQ(lines_of(instances.output).size(), 7U);
  EXPECT_THAT(instances.output,
              HasSubstr("Successfully destroyed GPU instance ID 14 from GPU  0\n"));
  EXPECT_THAT(disabled.output, HasSubstr("Disabled MIG Mode for GPU 00000000:07:00.0"));
  EXPECT_EQ(machine_.nvidia_smi("mig -lgi").exit_code, 6);
}

TEST_F(NvidiaSmi, ShowsTheProcessOfAPartition) {
  lay_out_seven();
  ASSERT_EQ(machine_
                .septet("sim attach --to 0:8:0 --pid 4242 --memory-mib 1234 "
                        "--name /usr/bin/septet-worker")
                .exit_code,
            0);

  const std::string screen = machine_.nvidia_smi("").output;

  EXPECT_THAT(screen, HasSubstr("1234MiB /  4864MiB"));
  EXPECT_THAT(
      screen,
      HasSubstr("|    0    8    0       4242      C   /usr/bin/septet-worker                  "
                "   1234MiB |"));
  EXPECT_THAT(screen, Not(HasSubstr("No running processes found")));
}

TEST_F(NvidiaSmi, ModeChangeOfABusyGpuStaysPending) {
  ASSERT_EQ(machine_.septet("sim attach --to 0 --pid 4242").exit_code, 0);

  const Outcome pending = machine_.nvidia_smi("-mig 1");

  EXPECT_EQ(pending.exit_code, 0);
  EXPECT_THAT(pending.output, HasSubstr("Warning: MIG mode is in pending enable state for GPU "
                                        "00000000:07:00.0:In use by another client"));
  EXPECT_THAT(machine_.nvidia_smi("").output, HasSubstr("|             Enabled* |"));
}

TEST_F(NvidiaSmi, KeepsEarlierInstancesWhenALaterOneFails) {
  ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);

  const Outcome created = machine_.nvidia_smi("mig -cgi 19,14,9,9");

  EXPECT_EQ(created.exit_code, 23);
  EXPECT_EQ(lines_of(created.output).size(), 5U) << created.output;
  const std::string list = machine_.nvidia_smi("mig -lgi").output;
  EXPECT_THAT(list, HasSubstr("6:1"));
  EXPECT_THAT(list, HasSubstr("4:2"));
  EXPECT_THAT(list, HasSubstr("0:4"));
}

TEST_F(NvidiaSmi, TellsATakenPlaceFromAnIllegalOne) {
  ASSERT_EQ(machine_.nvidia_smi("-mig 1").exit_code, 0);
  ASSERT_EQ(machine_.nvidia_smi("mig -cgi 9:4,14:0").exit_code, 0);

  EXPECT_EQ(machine_.nvidia_smi("mig -cgi 19:0").exit_code, 23);
  EXPECT_EQ(machine_.nvidia_smi("mig -cgi 19:2").exit_code, 0);
  EXPECT_EQ(machine_.nvidia_smi("mig -cgi 19:7").exit_code, 2);
  EXPECT_EQ(machine_.nvidia_smi("mig -cgi 99").exit_code, 2);
  const std::string list = machine_.nvidia_smi("mig -lgip").output;
  for (const char* row : {"MIG 1g.5gb        19     1/7", "MIG 1g.5gb+me     20     1/1",
                          "MIG 1g.10gb       15     0/4", "MIG 2g.10gb       14     0/3",
                          "MIG 3g.20gb        9     0/2", "MIG 7g.40gb        0     0/1"}) {
    EXPECT_THAT(list, HasSubstr(row));
  }
}

}  // namespace
}  // namespace septet::acceptance
