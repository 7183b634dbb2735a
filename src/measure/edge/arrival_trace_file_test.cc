// Reads the published traces, where they are at hand, and compares with their published figures.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "measure/arrival_trace.h"
#include "measure/edge/compressed_file.h"

namespace septet::measure {
namespace {

std::filesystem::path trace(const std::string& name) {
  const char* shared = std::getenv("SEPTET_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "data/traces" / name;
}

struct Figures {
  const char* file;
  std::size_t rows;
  double span_s;
  double rate;
  double variation;  // CV^2 of the gaps
};

class PublishedTrace : public testing::TestWithParam<Figures> {};

TEST_P(PublishedTrace, HasItsPublishedFigures) {
  const std::filesystem::path path = trace(GetParam().file);
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there; set SEPTET_SHARED to the folder with data/traces";
  }

  const Result<std::string> text = read_compressed_file(path.string());
  ASSERT_TRUE(text.ok()) << text.error().text();
  const Result<std::vector<Duration>> gaps = parse_arrival_trace(*text, 1);
  ASSERT_TRUE(gaps.ok()) << gaps.error().text();

  double sum = 0;
  double squares = 0;
  for (const Duration gap : *gaps) {
    sum += to_seconds(gap);
    squares += to_seconds(gap) * to_seconds(gap);
  }
  const double mean = sum / static_cast<double>(gaps->size() - 1);
  EXPECT_EQ(gaps->size(), GetParam().rows);
  EXPECT_NEAR(sum, GetParam().span_s, 0.1);
  EXPECT_NEAR(1 / mean, GetParam().rate, 0.01);
  EXPECT_NEAR(squares / static_cast<double>(gaps->size() - 1) / (mean * mean) - 1,
              GetParam().variation, 0.01 * GetParam().variation + 0.05);
}

INSTANTIATE_TEST_SUITE_P(
    Azure, PublishedTrace,
    testing::Values(Figures{"AzureLLMInferenceTrace_code.csv.gz", 8819, 3435.9, 2.57, 173},
                    Figures{"AzureLLMInferenceTrace_conv.csv.gz", 19366, 3501.7, 5.53, 1.2}),
    [](const auto& test) { return test.index == 0 ? "code" : "conversation"; });

}  // namespace
}  // namespace septet::measure
