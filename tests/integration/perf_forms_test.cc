// What septet perf prints and writes, beside what perf_analyzer 23.05 printed and wrote with the
// same words: every line equal but for the figures.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "integration/perf_fixture.h"
#include "support/simulated_grpc_server.h"
#include "support/simulated_server.h"

namespace septet {
namespace {

namespace fs = std::filesystem;
using test::PerfTest;

// Numbers become N, so that forms can be compared.
std::string form_of(const std::string& text) {
  static const std::regex number(R"([0-9]+(\.[0-9]+)?(e\+[0-9]+)?)");
  return std::regex_replace(text, number, "N");
}

class PerfFormsTest : public PerfTest {
 protected:
  void SetUp() override {
    const char* named = std::getenv("SEPTET_SHARED");
    captured_ =
        fs::path(named != nullptr ? named : SEPTET_SOURCE_DIR "/../shared") / "data/protocol";
    if (!fs::is_directory(captured_)) {
      GTEST_SKIP() << "there are no captured outputs in " << captured_;
    }
  }
  std::string captured(const std::string& name) const { return test::read_text(captured_ / name); }

  // Runs with short windows and a rule that every level meets in which anything is answered; where
  // other programs take the processors, with longer ones.
  void measure(const std::string& url, const std::vector<std::string>& asked) {
    for (const char* window_ms : {"100", "300", "2000", "10000"}) {
      std::vector<std::string> words = asked;
      words.insert(words.end(),
                   {"-u", url, "-s", "100000", "-r", "3", "-f", file("perf.csv"), "-p", window_ms});
      ASSERT_EQ(run(words), 0) << output_;
      if (output_.find("Not stable") == std::string::npos) {
        return;
      }
    }
  }
  void expect_console_like(const std::string& name) {
    EXPECT_EQ(form_of(output_), form_of(captured(name))) << output_;
  }
  void expect_csv_like(const std::string& name) {
    const std::string ours = test::read_text(file("perf.csv"));
    const std::string theirs = captured(name);
    EXPECT_EQ(ours.substr(0, ours.find('\n')), theirs.substr(0, theirs.find('\n')));
    EXPECT_EQ(form_of(ours), form_of(theirs)) << ours;
  }

  fs::path captured_;
};

TEST_F(PerfFormsTest, AConcurrencySweep) {
  const test::SimulatedServer server({});

  measure(server.endpoint().text(), {"--concurrency-range", "1:4"});

  expect_console_like("perf_concurrency_1_4.stdout.txt");
  expect_csv_like("perf_concurrency_1_4.csv");
}

TEST_F(PerfFormsTest, AShortConcurrencySweep) {
  const test::SimulatedServer server({});

  measure(server.endpoint().text(), {"--concurrency-range", "1:2"});

  expect_console_like("http_perf_analyzer.stdout.txt");
}

TEST_F(PerfFormsTest, Sequences) {
  test::ServerBehaviour behaviour;
  behaviour.is_sequence_model = true;
  const test::SimulatedServer server(behaviour);

  measure(server.endpoint().text(), {"--concurrency-range", "2"});

  expect_console_like("http_perf_analyzer_sequence.stdout.txt");
}

TEST_F(PerfFormsTest, PoissonRates) {
  const test::SimulatedServer server({});

  measure(server.endpoint().text(),
          {"--request-rate-range", "50:100:50", "--request-distribution", "poisson"});

  expect_csv_like("perf_rate_poisson.csv");
}

TEST_F(PerfFormsTest, CustomIntervals) {
  std::ofstream(file("gaps")) << "20000\n5000\n30000\n";
  const test::SimulatedServer server({});

  measure(server.endpoint().text(), {"--request-intervals", file("gaps")});

  expect_csv_like("perf_custom_intervals.csv");
  EXPECT_THAT(test::read_text(file("perf.csv")), testing::HasSubstr("\n54,"));
}

TEST_F(PerfFormsTest, VerboseWithoutTheTrailingComma) {
  const test::SimulatedServer server({});

  measure(server.endpoint().text(), {"--concurrency-range", "2:2", "--verbose-csv"});

  const std::string theirs =
      std::regex_replace(captured("perf_verbose.csv"), std::regex(",\n"), "\n");
  const std::string ours = test::read_text(file("perf.csv"));
  EXPECT_EQ(form_of(ours), form_of(theirs)) << ours;
}

TEST_F(PerfFormsTest, GrpcAtAPercentile) {
  const test::SimulatedGrpcServer server;

  measure(server.endpoint().text(),
          {"-i", "grpc", "--concurrency-range", "1:4:3", "--percentile", "90"});

  expect_csv_like("perf_grpc_percentile90.csv");
}

}  // namespace
}  // namespace septet
