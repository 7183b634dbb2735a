// The whole experiment, small: real processes, real inference, real limits where this system allows
// them. No figure is judged here, only that everything is measured, kept and tidied up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/text.h"
#include "integration/septet_run.h"
#include "measure/results.h"
#include "os/cgroup.h"

namespace septet::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kPatience = seconds(240);
constexpr const char* kModel = "simple";

class CompareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cannot_serve(kModel)) {
      GTEST_SKIP() << *reason;
    }
  }

  std::vector<std::string> compare_words(const std::vector<std::string>& more,
                                         const std::string& model = kModel) const {
    std::vector<std::string> arguments = {"compare", "--simulate", "A100-SXM4-40GB",
                                          "--model", model,        "--out"};
    arguments.push_back(out_);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  SeptetRun compare(const std::vector<std::string>& more, const std::string& model = kModel) {
    return SeptetRun(folder_, "compare", compare_words(more, model));
  }
  std::vector<measure::ResultRow> rows() const {
    const auto parsed = measure::parse_results(read_text(out_ + "/results.csv"), "results.csv");
    return parsed.ok() ? *parsed : std::vector<measure::ResultRow>{};
  }
  std::vector<std::string> left_by(pid_t pid) const { return left_behind(folder_, pid); }

  TestFolder folder_;
  std::string out_ = folder_ / "results";
};

TEST_F(CompareTest, MeasuresEveryCellAndWritesEveryFile) {
  // Where other programs take the processors, a short window may see no answer: then a longer one
  // tells that from a cell that is never measured.
  std::optional<SeptetRun> last;
  for (const char* window : {"100ms", "1s", "5s"}) {
    out_ = folder_ / (std::string("results_") + window);
    SeptetRun& run =
        last.emplace(folder_, "compare",
                     compare_words({"--techniques", "mig,time-slicing,streams,mps", "--replicas",
                                    "1,2", "--concurrency", "1,3", "--window", window}));
    const auto status = run.wait(kPatience);
    ASSERT_TRUE(status.has_value()) << run.output();
    ASSERT_TRUE(status->success()) << status->text() << "\n" << run.output();
    const std::vector<measure::ResultRow> measured = rows();
    if (std::all_of(measured.begin(), measured.end(),
                    [](const measure::ResultRow& row) { return row.throughput > 0; })) {
      break;
    }
  }
  SeptetRun& run = *last;
  const pid_t pid = run.process().pid();

  ASSERT_EQ(rows().size(), 12u) << run.output();
  for (const measure::ResultRow& row : rows()) {
    EXPECT_GT(row.throughput, 0) << row.context.technique << " " << row.context.replicas;
    EXPECT_EQ(row.errors, 0u);
    EXPECT_TRUE(row.context.simulated);
  }
  for (const char* configuration : {"mig-1", "mig-2", "time-slicing-2", "streams-1"}) {
    const std::string csv = read_text(out_ + "/" + configuration + "/perf.csv");
    EXPECT_THAT(csv, HasSubstr("Concurrency,Inferences/Second,")) << configuration;
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3) << csv;
  }
  EXPECT_THAT(read_text(out_ + "/report.html"), HasSubstr("<svg"));
  EXPECT_THAT(read_text(out_ + "/report.html"), HasSubstr("MPS shares a real GPU"));
  EXPECT_THAT(run.output(), HasSubstr("report.html"));
  EXPECT_THAT(left_by(pid), IsEmpty());
}

TEST_F(CompareTest, PartitionSizesAreComparedWithTheGpuFullOfEach) {
  SeptetRun run =
      compare({"--profiles", "2g.10gb,3g.20gb", "--concurrency", "1,4", "--window", "100ms"});

  const auto status = run.wait(kPatience);

  ASSERT_TRUE(status.has_value() && status->success()) << run.output();
  std::vector<std::string> measured;
  for (const measure::ResultRow& row : rows()) {
    measured.push_back(std::to_string(row.context.replicas) + " " + row.context.profile);
  }
  EXPECT_THAT(measured, ::testing::ElementsAre("3 2g.10gb", "3 2g.10gb", "2 3g.20gb", "2 3g.20gb"));
  EXPECT_THAT(read_text(out_ + "/report.html"), HasSubstr("Which partition size"));
  EXPECT_THAT(run.output(), HasSubstr("inferences/s a GPU"));
}

TEST_F(CompareTest, AnInterruptKeepsWhatWasMeasuredAndLeavesNothingBehind) {
  SeptetRun run = compare(
      {"--techniques", "mig", "--replicas", "2", "--concurrency", "1:200", "--window", "50ms"});
  const pid_t pid = run.process().pid();
  ASSERT_TRUE(eventually(kPatience, [&] { return rows().size() >= 2; })) << run.output();

  run.process().send_signal(SIGINT);
  const auto status = run.wait(kPatience);

  ASSERT_TRUE(status.has_value()) << run.output();
  EXPECT_EQ(status->code, 130) << status->text() << "\n" << run.output();
  EXPECT_GE(rows().size(), 2u);
  EXPECT_THAT(read_text(out_ + "/report.html"), HasSubstr("Interrupted"));
  EXPECT_THAT(left_by(pid), IsEmpty());
}

TEST_F(CompareTest, EvenAKillLeavesNothingBehind) {
  SeptetRun run = compare(
      {"--techniques", "mig", "--replicas", "3", "--concurrency", "1:200", "--window", "50ms"});
  const pid_t pid = run.process().pid();
  ASSERT_TRUE(eventually(kPatience, [&] { return !rows().empty(); })) << run.output();

  run.process().send_signal(SIGKILL);

  ASSERT_TRUE(run.wait(kPatience).has_value());
  EXPECT_TRUE(eventually(kPatience, [&] { return left_by(pid).empty(); }))
      << ::testing::PrintToString(left_by(pid));
  EXPECT_FALSE(rows().empty());
}

// The clients in isolation.csv that lost a request after the fault, without the one at the fault.
std::size_t harmed(const std::string& csv, std::size_t& clients) {
  std::size_t count = 0;
  clients = 0;
  for (const std::string_view line : split(csv, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() > 8 && cells[2] == "0") {
      ++clients;
      count += parse_int(cells[8]).value_or(1) > 0 || parse_int(cells[7]).value_or(0) == 0 ? 1 : 0;
    }
  }
  return count;
}

class IsolationTest : public CompareTest {
 protected:
  void SetUp() override {
    CompareTest::SetUp();
    if (const auto found = os::find_cgroups(); !IsSkipped() && !found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
  }
};

TEST_F(IsolationTest, OnPartitionsTheOthersLoseNoRequest) {
  SeptetRun run = compare({"--isolation", "--techniques", "mig", "--replicas", "7"});

  const auto status = run.wait(kPatience);

  ASSERT_TRUE(status.has_value()) << run.output();
  EXPECT_TRUE(status->success()) << run.output();
  std::size_t clients = 0;
  EXPECT_EQ(harmed(read_text(out_ + "/isolation.csv"), clients), 0u)
      << read_text(out_ + "/isolation.csv");
  EXPECT_EQ(clients, 6u);
  EXPECT_THAT(run.output(), HasSubstr("was ended"));
}

TEST_F(IsolationTest, InOneServerAllLoseRequests) {
  SeptetRun run = compare({"--isolation", "--techniques", "streams", "--replicas", "3"});

  const auto status = run.wait(kPatience);

  ASSERT_TRUE(status.has_value()) << run.output();
  std::size_t clients = 0;
  EXPECT_EQ(harmed(read_text(out_ + "/isolation.csv"), clients), 2u)
      << read_text(out_ + "/isolation.csv");
}

TEST_F(CompareTest, AnEarlierRunsResultsAreNotOverwritten) {
  const std::string earlier = measure::results_header() + "mig,1,1,...\n";
  std::filesystem::create_directories(out_);
  std::ofstream(out_ + "/results.csv") << earlier;

  SeptetRun run = compare({"--techniques", "mig", "--replicas", "1", "--concurrency", "1"});
  const auto status = run.wait(kPatience);

  ASSERT_TRUE(status.has_value()) << run.output();
  EXPECT_EQ(status->code, 3) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("holds the results of an earlier run"));
  EXPECT_EQ(read_text(out_ + "/results.csv"), earlier);
}

TEST_F(CompareTest, UnknownWordsAreUsageErrorsThatHelp) {
  SeptetRun technique = compare({"--techniques", "mgi"});
  ASSERT_TRUE(technique.wait(kPatience).has_value());
  EXPECT_EQ(technique.wait(kPatience)->code, 2);
  EXPECT_THAT(technique.output(), HasSubstr("did you mean 'mig'?"));

  SeptetRun replicas = compare({"--replicas", "7:1"});
  ASSERT_TRUE(replicas.wait(kPatience).has_value());
  EXPECT_EQ(replicas.wait(kPatience)->code, 2);
  EXPECT_THAT(replicas.output(), HasSubstr("--replicas '7:1'"));

  SeptetRun model = compare({}, "simpel");
  ASSERT_TRUE(model.wait(kPatience).has_value());
  EXPECT_EQ(model.wait(kPatience)->code, 6);
  EXPECT_THAT(model.output(), HasSubstr("there is no model 'simpel'"));
}

}  // namespace
}  // namespace septet::test
