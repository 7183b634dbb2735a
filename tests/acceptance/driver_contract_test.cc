// The driver over the library and the driver in process are one: the same calls, the same answers.

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/prng.h"
#include "gpu/edge/open_driver.h"
#include "gpu/edge/simulation_clients.h"
#include "gpu/simulated_driver.h"

namespace septet::acceptance {
namespace {

using gpu::GpuDriver;
using ::testing::HasSubstr;

class DriverContract : public ::testing::Test {
 protected:
  DriverContract() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "septet-driver-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    ::setenv("SEPTET_SIM_ROOT", root_.c_str(), 1);
  }
  ~DriverContract() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::string root_;
};

template <typename T>
std::string kind_of(const Result<T>& result) {
  return result.ok() ? "ok" : to_string(result.error().kind);
}

// Any one call, chosen by the numbers; what came of it in words.
std::string do_something(GpuDriver& driver, const gpu::GpuModel& model, std::uint64_t choice,
                         std::uint64_t number) {
  const auto& profile = model.profiles[number % model.profiles.size()];
  const auto place = profile.placements[number / 7 % profile.placements.size()];
  const gpu::GpuInstanceId instance(static_cast<unsigned>(number % 15));
  switch (choice) {
    case 0:
    case 1:
      return "create " + kind_of(driver.create_gpu_instance(0, profile.id, place));
    case 2:
      return "compute " + kind_of(driver.create_compute_instance(
                              0, instance, gpu::ProfileId(static_cast<unsigned>(number % 5))));
    case 3:
      return "drop compute " +
             kind_of(driver.destroy_compute_instance(0, instance, gpu::ComputeInstanceId(0)));
    case 4:
      return "drop " + kind_of(driver.destroy_gpu_instance(0, instance));
    default: {
      const auto left = driver.remaining_capacity(0, profile.id);
      return "left " + (left.ok() ? std::to_string(*left) : kind_of(left));
    }
  }
}

TEST_F(DriverContract, LibraryAndProcessAnswerAlike) {
  for (const char* key : {"A100-SXM4-40GB", "A30", "H200", "RTX-PRO-6000"}) {
    SCOPED_TRACE(key);
    const auto library = gpu::open_driver(key);
    ASSERT_TRUE(library.ok()) << library.error().text();
    gpu::SimulatedNode node = gpu::make_simulated_node(key).value();
    gpu::SimulatedDriver process(node);
    const gpu::GpuModel& model = **gpu::find_gpu_model(key);
    ASSERT_TRUE((*library)->set_mig_mode(0, gpu::MigMode::kEnabled).ok());
    ASSERT_TRUE(process.set_mig_mode(0, gpu::MigMode::kEnabled).ok());
    Prng prng(11);

    for (int i = 0; i < 60; ++i) {
      const std::uint64_t choice = prng.below(6);
      const std::uint64_t number = prng.next();
      ASSERT_EQ(do_something(**library, model, choice, number),
                do_something(process, model, choice, number))
          << "call " << i;
    }
    const auto seen = (*library)->observe(0);
    ASSERT_TRUE(seen.ok()) << seen.error().text();
    EXPECT_EQ(*seen, process.observe(0).value());
  }
}

TEST_F(DriverContract, SaysThatItIsSimulated) {
  const auto driver = gpu::open_driver("A30");
  ASSERT_TRUE(driver.ok()) << driver.error().text();

  const auto info = (*driver)->info();

  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->simulated);
  EXPECT_EQ(info->cuda_version, "12.2");
  EXPECT_THAT(info->library, HasSubstr("simnvml/libnvidia-ml.so.1"));
  EXPECT_EQ((*driver)->observe(7).error().kind, ErrorKind::kNotFound);
}

TEST_F(DriverContract, KeepsTheNodeForTheNextCommand) {
  ASSERT_TRUE(gpu::open_driver("A30").value()->set_mig_mode(0, gpu::MigMode::kEnabled).ok());

  EXPECT_EQ(gpu::open_driver("A30").value()->observe(0)->mig_current, gpu::MigMode::kEnabled);
}

TEST_F(DriverContract, AHeldPartitionIsInUseUntilReleased) {
  auto driver = gpu::open_driver("A30").value();
  ASSERT_TRUE(driver->set_mig_mode(0, gpu::MigMode::kEnabled).ok());
  const auto instance = driver->create_gpu_instance(0, gpu::ProfileId(14), {0, 1}).value();
  const auto compute = driver->create_compute_instance(0, instance.id, gpu::ProfileId(0)).value();
  const gpu::Client client{::getpid(), "replica", 64LL << 20};

  ASSERT_TRUE(gpu::hold_partition("A30", compute.uuid, client).ok());
  const auto state = driver->observe(0).value();
  const auto refused = driver->destroy_compute_instance(0, instance.id, compute.id);

  ASSERT_EQ(state.processes.size(), 1U);
  EXPECT_EQ(state.processes[0].name, "replica");
  EXPECT_EQ(state.processes[0].gpu_instance, instance.id);
  EXPECT_EQ(state.memory_used_mib, 64);
  EXPECT_EQ(refused.error().kind, ErrorKind::kPrecondition);
  EXPECT_EQ(gpu::hold_partition("A30", gpu::MigUuid("MIG-none"), client).error().kind,
            ErrorKind::kNotFound);
  ASSERT_TRUE(gpu::release_partition("A30", ::getpid()).ok());
  EXPECT_TRUE(driver->destroy_compute_instance(0, instance.id, compute.id).ok());
}

TEST_F(DriverContract, NamesTheSimulationWhereThereIsNoDriver) {
  const auto driver = gpu::open_driver("");
  if (driver.ok()) {
    GTEST_SKIP() << "this machine has a driver";
  }
  EXPECT_EQ(driver.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(driver.error().hint, HasSubstr("--simulate A100-SXM4-40GB"));
}

}  // namespace
}  // namespace septet::acceptance
