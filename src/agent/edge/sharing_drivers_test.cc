// Shares of a GPU against NVIDIA's own MPS control program, which runs without a GPU. From PATH, or
// unpacked by scripts/setup; skipped, saying so, where there is neither.
#include "agent/edge/sharing_drivers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "support/ledger_driver.h"

namespace septet::agent {
namespace {

namespace fs = std::filesystem;

bool is_found(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    if (access((std::string(folder) + "/" + program).c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

class MpsSharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path unpacked = fs::absolute(".deps/nvidia-cuda-mps/usr/bin");
    setenv("PATH", (std::string(std::getenv("PATH")) + ":" + unpacked.string()).c_str(), 1);
    if (!is_found("nvidia-cuda-mps-control")) {
      GTEST_SKIP() << "nvidia-cuda-mps-control is not installed (Debian: nvidia-cuda-mps, "
                      "non-free); scripts/setup unpacks it";
    }
    std::string pattern = fs::temp_directory_path() / "septet-sharing-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    driver_ = make_sharing_driver({}, folder_);
    ledger_.observe({testing::whole_gpu()});
  }
  void TearDown() override {
    for (const lend::Lease& lease : leases_) {
      EXPECT_TRUE(driver_->take_down(lease).ok());
    }
    if (!folder_.empty()) {
      fs::remove_all(folder_);
    }
  }

  lend::Lease share(const char* slice) {
    leases_.push_back(ledger_.lease(ledger_.ask(testing::LedgerDriver::request(1000, slice))));
    return leases_.back();
  }

  const lend::Partition gpu_ = testing::whole_gpu();
  std::string folder_;
  std::unique_ptr<lend::SharingDriver> driver_;
  testing::LedgerDriver ledger_;
  std::vector<lend::Lease> leases_;
};

TEST_F(MpsSharingTest, ALoneShareIsVerifiedByReadingItsLimitsBack) {
  lend::LeaseSetting setting;

  const auto verified = driver_->set_up(share("mps:25%,10GiB"), gpu_, setting);

  ASSERT_TRUE(verified.ok()) << verified.error().text();
  EXPECT_EQ(*verified, lend::Verified::kYes);
  EXPECT_TRUE(fs::exists(setting.mps_pipe_directory + "/control"));
}

TEST_F(MpsSharingTest, ASmallerShareBesideALargerOneIsAdvice) {
  lend::LeaseSetting setting;
  ASSERT_TRUE(driver_->set_up(share("mps:50%,10GiB"), gpu_, setting).ok());

  const auto verified = driver_->set_up(share("mps:25%,10GiB"), gpu_, setting);

  ASSERT_TRUE(verified.ok()) << verified.error().text();
  EXPECT_EQ(*verified, lend::Verified::kNo);
}

TEST_F(MpsSharingTest, TheDaemonKnowsItsClientsAndGoesWithTheLastShare) {
  EXPECT_FALSE(driver_->processes(gpu_.id));
  const lend::Lease lease = share("mps:25%,10GiB");
  lend::LeaseSetting setting;
  ASSERT_TRUE(driver_->set_up(lease, gpu_, setting).ok());

  const auto shared = driver_->processes(gpu_.id);
  ASSERT_TRUE(driver_->take_down(lease).ok());

  // Without a GPU no server and so no client can start; what matters is that the daemon answered.
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->clients.empty());
  EXPECT_FALSE(driver_->processes(gpu_.id));
}

}  // namespace
}  // namespace septet::agent
