// Leases between three users on the seven slices of a simulated A100, with the real program: the
// daemon, septet run in users' hands, crashes of both. Other users need root; without it these
// tests say that they are skipped.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "agent/edge/lease_client.h"
#include "base/text.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/process.h"
#include "simulated_machine.h"

namespace septet::acceptance {
namespace {

namespace fs = std::filesystem;
using lend::Json;
using ::testing::HasSubstr;

constexpr Duration kPatience = seconds(90);  // generous: the machine may be busy
constexpr const char* kNode = "A100-SXM4-40GB";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

bool eventually(const std::function<bool()>& holds) {
  const Instant deadline = os::now() + kPatience;
  while (!holds()) {
    if (os::now() > deadline) {
      return false;
    }
    ::poll(nullptr, 0, 20);
  }
  return true;
}

class LeaseTest : public ::testing::Test {
 protected:
  explicit LeaseTest(std::string node = kNode) : node_(std::move(node)), machine_(node_) {}

  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "acting as several users needs root";
    }
    if (find_program("setpriv").empty()) {
      GTEST_SKIP() << "setpriv (util-linux) is not installed";
    }
    // Other users must reach the program and the socket.
    chmod(machine_.folder().c_str(), 0755);
    if (machine_.run(as(1001, "test -x " SEPTET_PROGRAM)).exit_code != 0) {
      GTEST_SKIP() << "other users cannot reach " SEPTET_PROGRAM;
    }
    setenv("SEPTET_STATE_DIR", (machine_.folder() + "/state").c_str(), 1);
    const Outcome applied = machine_.septet("--yes apply 1g.5gb:7");
    ASSERT_EQ(applied.exit_code, 0) << applied.output;
    setenv("SEPTET_SOCKET", socket().c_str(), 1);
  }

  void TearDown() override {
    runs_.clear();
    if (daemon_) {
      // What is still lent is asked to end first.
      for (const Json& lease : leases()) {
        (void)client().call("DELETE",
                            fmt::format("/v1/leases/{}", lease["id"].get<std::uint64_t>()));
      }
      EXPECT_TRUE(eventually([&] { return leases().empty(); }));
      daemon_->send_signal(SIGTERM);
      EXPECT_TRUE(daemon_->wait(kPatience));
    }
  }

  std::string socket() const { return machine_.folder() + "/lend.sock"; }
  agent::LeaseClient client() const { return agent::LeaseClient(socket()); }

  static std::string as(unsigned uid, const std::string& command) {
    return fmt::format("setpriv --reuid={0} --regid={0} --clear-groups -- {1}", uid, command);
  }

  void start_daemon(const std::string& config = "") {
    const std::string path = machine_.write_file("septet.yaml", config);
    os::ProcessOptions options;
    options.arguments = {SEPTET_PROGRAM, "--simulate", node_,      "lend-daemon",
                         "--socket",     socket(),     "--ledger", machine_.folder() + "/ledger",
                         "--config",     path};
    options.environment = {{"SEPTET_SIM_ROOT", machine_.folder() + "/sim"}};
    Result<os::Process> process = os::Process::start(options);
    ASSERT_TRUE(process.ok()) << process.error().text();
    daemon_.emplace(*std::move(process));
    ASSERT_TRUE(eventually([&] { return client().call("GET", "/v1/status").ok(); }));
  }

  void kill_daemon() {
    daemon_->send_signal(SIGKILL);
    ASSERT_TRUE(daemon_->wait(kPatience));
    daemon_.reset();
  }

  // septet run of a user in the background, its output in a file.
  os::Process& start_run(unsigned uid, const std::string& words) {
    const std::string out = fmt::format("{}/out-{}", machine_.folder(), runs_.size());
    os::ProcessOptions options;
    options.arguments = {
        "sh", "-c",
        "exec " + as(uid, fmt::format("{} run {} > {} 2>&1", SEPTET_PROGRAM, words, out))};
    // The file is made by us: the user may not write here.
    std::ofstream{out};
    Result<os::Process> process = os::Process::start(options);
    CHECK(process.ok());
    runs_.push_back(std::make_unique<os::Process>(*std::move(process)));
    return *runs_.back();
  }
  std::string output_of_run(std::size_t index) const {
    return read_file(fmt::format("{}/out-{}", machine_.folder(), index));
  }

  Outcome run_as(unsigned uid, const std::string& words) const {
    return machine_.run(as(uid, fmt::format("{} {}", SEPTET_PROGRAM, words)));
  }

  std::vector<Json> leases(const std::string& state = "") const {
    const auto answer = client().call("GET", "/v1/leases");
    std::vector<Json> found;
    if (answer.ok()) {
      for (const Json& lease : (*answer)["leases"]) {
        if (state.empty() || lease["state"] == state) {
          found.push_back(lease);
        }
      }
    }
    return found;
  }
  bool has_active(std::size_t count) const {
    return eventually([&] { return leases("active").size() == count; });
  }
  // Every partition that is held, as often as it is held.
  std::multiset<std::string> held() const {
    std::multiset<std::string> partitions;
    for (const Json& lease : leases()) {
      for (const Json& holding : lease["holdings"]) {
        partitions.insert(holding["partition"].get<std::string>());
      }
    }
    return partitions;
  }

  std::string node_;
  SimulatedMachine machine_;
  std::optional<os::Process> daemon_;
  std::vector<std::unique_ptr<os::Process>> runs_;
};

TEST_F(LeaseTest, ThreeUsersBorrowSevenSlicesAndTheEighthIsTold) {
  start_daemon();
  for (unsigned i = 0; i < 7; ++i) {
    start_run(1001 + i % 3, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));

  const Outcome eighth = run_as(1002, "run --slice 1g.5gb -- true");
  const std::multiset<std::string> partitions = held();

  EXPECT_EQ(eighth.exit_code, 8) << eighth.output;
  EXPECT_THAT(eighth.output, HasSubstr("--queue"));
  EXPECT_EQ(std::set<std::string>(partitions.begin(), partitions.end()).size(), 7U);
}

TEST_F(LeaseTest, TheCommandRunsAsItsCallerAndItsExitCodeComesBack) {
  start_daemon();

  const Outcome outcome =
      run_as(1001, "run -q --slice 1g.5gb -- sh -c 'id -u; echo $CUDA_VISIBLE_DEVICES; exit 42'");

  EXPECT_EQ(outcome.exit_code, 42);
  const auto lines = lines_of(outcome.output);
  ASSERT_GE(lines.size(), 2U) << outcome.output;
  EXPECT_EQ(lines[0], "1001");
  EXPECT_THAT(lines[1], HasSubstr("MIG-"));
  EXPECT_TRUE(leases().empty());
}

TEST_F(LeaseTest, WhoQueuesIsServedWhenSomethingIsGivenBack) {
  start_daemon();
  for (unsigned i = 0; i < 7; ++i) {
    start_run(1001, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));
  start_run(1002, "--slice 1g.5gb --queue -- sleep 600");
  ASSERT_TRUE(eventually([&] { return leases("queued").size() == 1; }));

  runs_[0]->signal_group(SIGTERM);

  EXPECT_TRUE(eventually([&] { return leases("queued").empty(); }));
  EXPECT_TRUE(has_active(7));
}

TEST_F(LeaseTest, ASlicesCommandThatIsKilledGivesItBackWithItsChildren) {
  start_daemon();
  const std::string pids = machine_.folder() + "/pids";
  std::ofstream{pids};
  chmod(pids.c_str(), 0666);
  os::Process& run = start_run(
      1001, fmt::format("--slice 1g.5gb -- sh -c 'setsid sleep 600 & echo $! > {}; wait'", pids));
  ASSERT_TRUE(has_active(1));
  ASSERT_TRUE(eventually([&] { return !read_file(pids).empty(); }));
  const auto child = parse_int(trim(read_file(pids)));
  ASSERT_TRUE(child);

  kill(run.pid(), SIGKILL);

  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
  EXPECT_FALSE(os::process_start_time(static_cast<pid_t>(*child)));
}

TEST_F(LeaseTest, TheDaemonComesBackAndLosesNothing) {
  start_daemon();
  os::Process& run = start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  const std::multiset<std::string> before = held();

  kill_daemon();
  start_daemon();
  EXPECT_TRUE(eventually([&] { return output_of_run(0).find("held again") != std::string::npos; }))
      << output_of_run(0);

  EXPECT_EQ(held(), before);
  EXPECT_FALSE(run.poll_exit());
  for (unsigned i = 0; i < 6; ++i) {
    start_run(1002, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));
  EXPECT_EQ(run_as(1002, "run --slice 1g.5gb -- true").exit_code, 8);
}

TEST_F(LeaseTest, WhoWaitsKeepsItsPlaceWhenTheDaemonComesBack) {
  start_daemon();
  for (unsigned i = 0; i < 7; ++i) {
    start_run(1001, "--slice 1g.5gb -- sleep 600");
  }
  ASSERT_TRUE(has_active(7));
  start_run(1002, "--slice 1g.5gb --queue -- sleep 600");
  ASSERT_TRUE(eventually([&] { return leases("queued").size() == 1; }));

  kill_daemon();
  start_daemon();
  ASSERT_TRUE(eventually([&] { return output_of_run(7).find("held again") != std::string::npos; }))
      << output_of_run(7);
  runs_[0]->signal_group(SIGTERM);

  EXPECT_TRUE(eventually([&] { return leases("queued").empty(); }));
  EXPECT_TRUE(has_active(7));
}

TEST_F(LeaseTest, AHolderThatDiesWithTheDaemonIsFoundOut) {
  start_daemon("lend: {adopt_within: 1s}");
  os::Process& run = start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  kill_daemon();
  kill(run.pid(), SIGKILL);

  start_daemon("lend: {adopt_within: 1s}");

  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
}

TEST_F(LeaseTest, IdleIsWarnedAndTakenBackAndWorkIsNot) {
  start_daemon("lend: {idle_grace: 1s, sample_every: 200ms, kill_grace: 1s}");
  os::Process& idle = start_run(1001, "--slice 1g.5gb --idle 1s -- sleep 600");
  os::Process& busy = start_run(1002, "--slice 1g.5gb --idle 1s -- sh -c 'while :; do :; done'");

  EXPECT_TRUE(idle.wait(kPatience)) << output_of_run(0);

  EXPECT_THAT(output_of_run(0), HasSubstr("is idle"));
  EXPECT_FALSE(busy.poll_exit()) << output_of_run(1);
  const Outcome history = run_as(1001, "lease history");
  EXPECT_THAT(history.output, HasSubstr("idle"));
}

TEST_F(LeaseTest, AQuotaHoldsAndSaysSo) {
  start_daemon("lend: {quota: {leases: 2}}");
  start_run(1001, "--slice 1g.5gb -- sleep 600");
  start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(2));

  const Outcome third = run_as(1001, "run --slice 1g.5gb -- true");
  const Outcome other = run_as(1002, "run --slice 1g.5gb -- true");

  EXPECT_EQ(third.exit_code, 8);
  EXPECT_THAT(third.output, HasSubstr("quota"));
  EXPECT_EQ(other.exit_code, 0) << other.output;
}

TEST_F(LeaseTest, ACommandThatDoesNotExistReturnsTheSlice) {
  start_daemon();

  const Outcome outcome = run_as(1001, "run --slice 1g.5gb -- /no/such/program");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
}

TEST_F(LeaseTest, NobodyTouchesAnothersLease) {
  start_daemon();
  const Outcome acquired = run_as(1001, "-o json lease acquire --slice 1g.5gb --for 1h");
  ASSERT_EQ(acquired.exit_code, 0) << acquired.output;
  ASSERT_TRUE(has_active(1));
  const auto id = leases()[0]["id"].get<std::uint64_t>();

  const Outcome released = run_as(1002, fmt::format("lease release {}", id));
  const Outcome renewed = run_as(1002, fmt::format("lease renew {} --for 9h", id));

  EXPECT_EQ(released.exit_code, 7) << released.output;
  EXPECT_EQ(renewed.exit_code, 7) << renewed.output;
  EXPECT_EQ(leases("active").size(), 1U);
  EXPECT_EQ(run_as(1001, fmt::format("lease release {}", id)).exit_code, 0);
}

TEST_F(LeaseTest, AnImpossibleSliceNamesWhatFits) {
  start_daemon();

  const Outcome outcome = run_as(1001, "run --slice 9g.90gb -- true");

  EXPECT_EQ(outcome.exit_code, 8);
  EXPECT_THAT(outcome.output, HasSubstr("7 of 1g.5gb"));
}

TEST_F(LeaseTest, ALargeSliceIsMadeOfIdleOnesOnly) {
  start_daemon();
  start_run(1001, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));
  const std::multiset<std::string> before = held();

  const Outcome outcome = run_as(1002, "run --slice 3g.20gb -- sh -c 'echo $SEPTET_SLICE'");

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("3g.20gb"));
  EXPECT_EQ(held(), before);
}

TEST_F(LeaseTest, ASecondDaemonOnTheSameLedgerIsRefused) {
  start_daemon();

  const Outcome second = machine_.septet(
      fmt::format("lend-daemon --socket {0}/other.sock --ledger {0}/ledger", machine_.folder()));

  EXPECT_EQ(second.exit_code, 3) << second.output;
  EXPECT_THAT(second.output, HasSubstr("another daemon"));
}

class LeaseLimitsTest : public LeaseTest {
 protected:
  void SetUp() override {
    if (const auto found = os::find_cgroups(); !found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
    LeaseTest::SetUp();
  }
};

TEST_F(LeaseLimitsTest, ASliceHasItsShareOfTheProcessors) {
  start_daemon();

  // Two spinners on two processors would take two seconds each second; a seventh of them may not.
  const Outcome outcome =
      run_as(1001,
             "run -q --slice 1g.5gb -- sh -c 'timeout 3 sh -c \"while :; do :; done\" & "
             "timeout 3 sh -c \"while :; do :; done\"; wait; times'");

  // The last line of times: user and system time of the children, "0m0.84s 0m0.01s".
  const auto lines = lines_of(outcome.output);
  ASSERT_FALSE(lines.empty());
  const auto words = split(lines.back(), ' ');
  const std::size_t minutes = words[0].find('m');
  ASSERT_NE(minutes, std::string_view::npos) << outcome.output;
  const auto used = parse_double(words[0].substr(minutes + 1, words[0].size() - minutes - 2));
  ASSERT_TRUE(used) << outcome.output;
  const double cpus = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_LT(*used, 3 * cpus / 7 * 1.5) << outcome.output;
}

// An A100 whose smallest slice has little memory, so that running out of it does not take long.
class SmallSlice {
 public:
  SmallSlice() {
    std::string pattern = (fs::temp_directory_path() / "septet-node-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    std::ofstream(path()) << "version: 1\ngpus:\n  - model: " << kNode
                          << "\n    profiles: [{id: 19, memory-mib: 128}]\n";
  }
  ~SmallSlice() { fs::remove_all(folder_); }
  std::string path() const { return folder_ + "/node.yaml"; }

 private:
  std::string folder_;
};

class LeaseMemoryTest : private SmallSlice, public LeaseTest {
 protected:
  LeaseMemoryTest() : LeaseTest(SmallSlice::path()) {}
  void SetUp() override {
    if (const auto found = os::find_cgroups(); !found.ok()) {
      GTEST_SKIP() << found.error().text();
    }
    LeaseTest::SetUp();
  }
};

TEST_F(LeaseMemoryTest, OutOfMemoryInOneSliceLeavesTheOthersUntouched) {
  start_daemon();
  os::Process& neighbour = start_run(1002, "--slice 1g.5gb -- sleep 600");
  ASSERT_TRUE(has_active(1));

  // tail keeps its whole input: endless zeroes without a line end.
  const Outcome hog = run_as(1001, "run -q --slice 1g.5gb -- tail -n 1 /dev/zero");

  EXPECT_EQ(hog.exit_code, 128 + SIGKILL) << hog.output;
  EXPECT_FALSE(neighbour.poll_exit());
  EXPECT_EQ(leases("active").size(), 1U);
}

}  // namespace
}  // namespace septet::acceptance
