#include "partition/time_slice.h"

#include <gtest/gtest.h>

namespace septet::partition {
namespace {

TEST(TimeSlice, AllowsSharingFirstThenSetsTheLength) {
  EXPECT_EQ(time_slice_commands("GPU-1", SliceLength::kLong),
            (std::vector<CommandLine>{{"-i", "GPU-1", "-c", "DEFAULT"},
                                      {"compute-policy", "-i", "GPU-1", "--set-timeslice=3"}}));
}

TEST(TimeSlice, ReadsTheListedLength) {
  const char* table =
      "+-------------------------------------+\n"
      "| GPU compute policies:               |\n"
      "| GPU     Name             Value      |\n"
      "|=====================================|\n"
      "|   0     Timeslice        Medium     |\n"
      "+-------------------------------------+\n";

  EXPECT_EQ(listed_slice_length(table), SliceLength::kMedium);
  EXPECT_FALSE(listed_slice_length("No devices were found"));
}

}  // namespace
}  // namespace septet::partition
