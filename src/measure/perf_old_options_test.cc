#include "measure/perf_old_options.h"

#include <gmock/gmock.h>

#include <cstring>

namespace septet::measure {
namespace {

TEST(OldOptions, AnOldConcurrencyIsARangeOfOneLevel) {
  PerfArguments arguments;
  arguments.old_concurrency = 4;

  EXPECT_EQ(in_todays_words(arguments)->concurrency_range, "4");
}

TEST(OldOptions, ADynamicConcurrencyGrowsToItsLimit) {
  PerfArguments arguments;
  arguments.dynamic_concurrency = true;
  arguments.old_max_concurrency = 8;
  EXPECT_EQ(in_todays_words(arguments)->concurrency_range, "1:8");

  arguments.old_max_concurrency.reset();
  EXPECT_EQ(in_todays_words(arguments)->concurrency_range, "1:0");
}

TEST(OldOptions, OldWordsForDataBecomeInputData) {
  PerfArguments arguments;
  arguments.zero_input = true;
  arguments.data_directory = "folder";

  EXPECT_THAT(in_todays_words(arguments)->input_data, testing::ElementsAre("zero", "folder"));
}

TEST(RefusedOptions, AreRefusedByNameWithWhatToDo) {
  for (const RefusedOption& option : refused_options()) {
    const Result<Ok> outcome = refuse(option, "something");

    ASSERT_FALSE(outcome.ok()) << option.name;
    EXPECT_EQ(outcome.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(outcome.error().message, testing::StartsWith(option.name));
    EXPECT_GT(outcome.error().hint.size(), 10U) << option.name;
  }
}

TEST(RefusedOptions, AreAcceptedWhenTheyAskForWhatIsDoneAnyway) {
  for (const RefusedOption& option : refused_options()) {
    if (std::strlen(option.same_value) > 0) {
      EXPECT_TRUE(refuse(option, option.same_value).ok()) << option.name;
    }
  }
}

TEST(PerfOldOptions, MpiIsTakenAloneOnly) {
  EXPECT_TRUE(check_mpi(nullptr).ok());
  EXPECT_TRUE(check_mpi("1").ok());
  EXPECT_TRUE(check_mpi("what").ok());
  EXPECT_EQ(check_mpi("2").error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace septet::measure
