#include "lend/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lend/slice_want.h"

namespace septet::lend {
namespace {

Lease lease_of(const char* slice, Holding holding) {
  Lease lease;
  lease.id = LeaseId(17);
  lease.request.owner = {UserId(1000), "ada", {}};
  lease.request.want = *parse_slice_want(slice);
  lease.state = LeaseState::kActive;
  lease.holdings = {std::move(holding)};
  return lease;
}

Lease mig_lease() {
  return lease_of("1g.5gb", {PartitionId("MIG-1"), SliceKind::kInstance, 0, 4864, 142});
}

Lease mps_lease() {
  return lease_of("mps:25%,10GB", {PartitionId("GPU-1"), SliceKind::kMps, 25, 10240, 250});
}

LeaseSetting mps_setting() {
  LeaseSetting setting;
  setting.mps_pipe_directory = "/run/septet/mps/GPU-1/pipe";
  setting.is_enforced = true;
  return setting;
}

std::optional<std::string> value_of(const std::vector<Variable>& variables, const char* name) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const Variable& each) { return each.name == name; });
  EXPECT_NE(found, variables.end()) << name << " is neither set nor unset";
  return found == variables.end() ? std::nullopt : found->value;
}

TEST(LeaseEnvironment, OfAMigDeviceShowsItAloneAndUnsetsMps) {
  const auto variables = lease_variables(mig_lease(), {});

  EXPECT_EQ(value_of(variables, "CUDA_VISIBLE_DEVICES"), "MIG-1");
  EXPECT_EQ(value_of(variables, "NVIDIA_VISIBLE_DEVICES"), "MIG-1");
  EXPECT_EQ(value_of(variables, "SEPTET_LEASE"), "17");
  EXPECT_EQ(value_of(variables, "SEPTET_LIMITS"), "advisory");
  EXPECT_FALSE(value_of(variables, "CUDA_MPS_PIPE_DIRECTORY"));
  EXPECT_FALSE(value_of(variables, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
}

TEST(LeaseEnvironment, OfAnMpsShareStatesItsLimits) {
  const auto variables = lease_variables(mps_lease(), mps_setting());

  EXPECT_EQ(value_of(variables, "CUDA_VISIBLE_DEVICES"), "GPU-1");
  EXPECT_EQ(value_of(variables, "CUDA_MPS_PIPE_DIRECTORY"), "/run/septet/mps/GPU-1/pipe");
  EXPECT_EQ(value_of(variables, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "25");
  EXPECT_EQ(value_of(variables, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "0=10240M");
  EXPECT_EQ(value_of(variables, "CUDA_MPS_CLIENT_PRIORITY"), "0");
  EXPECT_EQ(value_of(variables, "SEPTET_LIMITS"), "enforced");
}

TEST(LeaseEnvironment, AStaticPartitionReplacesThePercentage) {
  LeaseSetting setting = mps_setting();
  setting.mps_sm_partition = "GPU-1/abc";

  const auto variables = lease_variables(mps_lease(), setting);

  EXPECT_EQ(value_of(variables, "CUDA_MPS_SM_PARTITION"), "GPU-1/abc");
  EXPECT_FALSE(value_of(variables, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
}

TEST(LeaseEnvironment, OfSeveralDevicesListsAll) {
  Lease lease = mig_lease();
  lease.holdings.push_back(lease.holdings[0]);
  lease.holdings[1].partition = PartitionId("MIG-2");

  EXPECT_EQ(value_of(lease_variables(lease, {}), "CUDA_VISIBLE_DEVICES"), "MIG-1,MIG-2");
  EXPECT_EQ(render_environment(lease, {}, EnvironmentFormat::kCdi),
            "nvidia.com/gpu=MIG-1\nnvidia.com/gpu=MIG-2\n");
}

TEST(LeaseEnvironment, DockerArgumentsSurviveAShell) {
  LeaseSetting setting;
  setting.cpus = 0.2857;
  setting.memory_bytes = 1 << 30;

  EXPECT_EQ(render_environment(mig_lease(), setting, EnvironmentFormat::kDocker),
            "--gpus '\"device=MIG-1\"' --cpu-period 10000 --cpu-quota 2857 --memory 1073741824b "
            "-e SEPTET_LEASE=17\n");
}

TEST(LeaseEnvironment, PodmanUsesCdiAndMpsNeedsItsPipe) {
  EXPECT_EQ(render_environment(mps_lease(), mps_setting(), EnvironmentFormat::kPodman),
            "--device nvidia.com/gpu=GPU-1 -v "
            "/run/septet/mps/GPU-1/pipe:/run/septet/mps/GPU-1/pipe --ipc=host --user 1000 -e "
            "CUDA_MPS_PIPE_DIRECTORY=/run/septet/mps/GPU-1/pipe -e "
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 -e CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M -e "
            "CUDA_MPS_CLIENT_PRIORITY=0 -e SEPTET_LEASE=17\n");
}

TEST(LeaseEnvironment, SlurmLinesAreNotQuoted) {
  const std::string text = render_environment(mig_lease(), {}, EnvironmentFormat::kSlurm);

  EXPECT_NE(text.find("export CUDA_VISIBLE_DEVICES=MIG-1\n"), std::string::npos);
  EXPECT_NE(text.find("unset CUDA_MPS_PIPE_DIRECTORY\n"), std::string::npos);
}

TEST(ShellQuoted, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(shell_quoted("MIG-1"), "MIG-1");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace septet::lend
