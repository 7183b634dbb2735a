#include "balance/statistics_keeper.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace septet::balance {
namespace {

std::string stats(std::uint64_t count, std::string_view model = "m") {
  return fmt::format(
      R"({{"model_stats":[{{"name":"{}","version":"1","inference_count":{},"execution_count":{}}}]}})",
      model, count, count);
}

std::uint64_t count_of(const StatisticsKeeper& keeper, std::string_view model = "m") {
  const std::optional<std::string> text = keeper.document(model, "");
  return text ? nlohmann::json::parse(*text)["model_stats"][0]["inference_count"]
                    .get<std::uint64_t>()
              : 0;
}

TEST(StatisticsKeeper, SumsTheLastAnswersOfAllReplicas) {
  StatisticsKeeper keeper;
  keeper.record("a", stats(3));
  keeper.record("b", stats(4));
  keeper.record("a", stats(5));

  EXPECT_EQ(count_of(keeper), 9U);
}

TEST(StatisticsKeeper, KeepsWhatADepartedReplicaCounted) {
  StatisticsKeeper keeper;
  keeper.record("a", stats(3));
  keeper.record("b", stats(4));
  keeper.departed("a");
  keeper.departed("never seen");

  EXPECT_EQ(count_of(keeper), 7U);
}

TEST(StatisticsKeeper, AReplicaThatStartsAgainFromZeroTakesNothingBack) {
  StatisticsKeeper keeper;
  keeper.record("a", stats(100));
  keeper.record("a", stats(2));

  EXPECT_EQ(count_of(keeper), 102U);
}

TEST(StatisticsKeeper, AnswersForOneModel) {
  StatisticsKeeper keeper;
  keeper.record("a", stats(3, "x"));
  keeper.record("b", stats(4, "y"));

  EXPECT_EQ(count_of(keeper, "y"), 4U);
  EXPECT_FALSE(keeper.document("z", ""));
}

TEST(StatisticsKeeper, RefusesGarbage) {
  StatisticsKeeper keeper;
  EXPECT_FALSE(keeper.record("a", "{\"model_stats\":7}"));
  EXPECT_FALSE(keeper.record("a", "no"));
  EXPECT_FALSE(keeper.record("a", "[]"));
}

}  // namespace
}  // namespace septet::balance
