// A script plays nvidia-smi: it keeps the length in a file and lists it as the real one does.
#include "partition/edge/time_slice_driver.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace septet::partition {
namespace {

class TimeSliceDriverTest : public ::testing::Test {
 protected:
  TimeSliceDriverTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "septet-slice-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    program_ = folder_ + "/nvidia-smi";
  }
  ~TimeSliceDriverTest() override { std::filesystem::remove_all(folder_); }

  void play(const std::string& script) {
    std::ofstream(program_) << "#!/bin/sh\ncd " << folder_ << "\n" << script;
    chmod(program_.c_str(), 0755);
  }

  std::string folder_;
  std::string program_;
};

constexpr const char* kObedient =
    "echo \"$@\" >> calls\n"
    "case \"$*\" in\n"
    "  *--set-timeslice=*) echo \"${*##*=}\" > length;;\n"
    "  *-l) set -- Default Short Medium Long; shift $(cat length);\n"
    "       echo \"|   0     Timeslice        $1     |\";;\n"
    "esac\n";

TEST_F(TimeSliceDriverTest, SetsAndReadsBack) {
  play(kObedient);
  TimeSliceDriver driver(program_);

  const Result<Ok> set = driver.set("GPU-1", SliceLength::kLong);

  ASSERT_TRUE(set.ok()) << set.error().text();
  EXPECT_EQ(*driver.get("GPU-1"), SliceLength::kLong);
  std::ifstream calls(folder_ + "/calls");
  std::string first;
  std::getline(calls, first);
  EXPECT_EQ(first, "-i GPU-1 -c DEFAULT");
}

TEST_F(TimeSliceDriverTest, ALengthThatDoesNotStickIsFound) {
  play("echo '|   0     Timeslice        Default     |'\n");

  const Result<Ok> set = TimeSliceDriver(program_).set("GPU-1", SliceLength::kLong);

  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().kind, ErrorKind::kVerification);
}

TEST_F(TimeSliceDriverTest, ItsOwnWordsComeWithItsFailure) {
  play("echo 'Insufficient Permissions'; exit 4\n");

  const Result<Ok> set = TimeSliceDriver(program_).set("GPU-1", SliceLength::kShort);

  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.error().message.find("Insufficient Permissions"), std::string::npos);
}

}  // namespace
}  // namespace septet::partition
