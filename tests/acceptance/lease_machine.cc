#include "lease_machine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/check.h"
#include "lend/edge/cgroup_ground.h"
#include "os/clock.h"
#include "os/lasting_cgroup.h"

namespace septet::acceptance {

namespace {

std::string as(unsigned uid, const std::string& command) {
  return fmt::format("setpriv --reuid={0} --regid={0} --clear-groups -- {1}", uid, command);
}

}  // namespace

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

LeaseTest::LeaseTest(std::string node) : node_(std::move(node)), machine_(node_) {}

void LeaseTest::SetUp() {
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

void LeaseTest::TearDown() {
  const bool had_daemon = daemon_.has_value();
  runs_.clear();
  if (daemon_) {
    end_daemon();
  }
  const std::vector<std::string> left = remove_groups();
  if (had_daemon) {
    EXPECT_THAT(left, ::testing::IsEmpty()) << "control groups that outlive their leases";
  }
}

void LeaseTest::end_daemon() {
  // What is still lent is asked to end first.
  for (const lend::Json& lease : leases()) {
    (void)client().call("DELETE", fmt::format("/v1/leases/{}", lease["id"].get<std::uint64_t>()));
  }
  EXPECT_TRUE(eventually([&] { return leases().empty(); }));
  daemon_->send_signal(SIGTERM);
  EXPECT_TRUE(daemon_->wait(kPatience));
}

std::vector<std::string> LeaseTest::remove_groups() const {
  std::vector<std::string> left;
  const Result<os::CgroupMounts> mounts = os::find_cgroups();
  if (!mounts.ok()) {
    return left;
  }
  const std::string prefix = fmt::format("lease-{}-", lend::ledger_tag(ledger()));
  for (const std::string& name : os::LastingCgroup::list(*mounts)) {
    if (name.starts_with(prefix)) {
      left.push_back(name);
      const auto group = os::LastingCgroup::open(*mounts, name);
      EXPECT_TRUE(group.ok() && (*group)->remove().ok()) << name;
    }
  }
  return left;
}

void LeaseTest::start_daemon(const std::string& config) {
  const std::string path = machine_.write_file("septet.yaml", config);
  os::ProcessOptions options;
  options.arguments = {SEPTET_PROGRAM, "--simulate", node_,    "lend-daemon", "--socket",
                       socket(),       "--ledger",   ledger(), "--config",    path};
  options.environment = {{"SEPTET_SIM_ROOT", machine_.folder() + "/sim"}};
  Result<os::Process> process = os::Process::start(options);
  ASSERT_TRUE(process.ok()) << process.error().text();
  daemon_.emplace(*std::move(process));
  ASSERT_TRUE(eventually([&] { return client().call("GET", "/v1/status").ok(); }));
}

void LeaseTest::kill_daemon() {
  daemon_->send_signal(SIGKILL);
  ASSERT_TRUE(daemon_->wait(kPatience));
  daemon_.reset();
}

os::Process& LeaseTest::start_run(unsigned uid, const std::string& words) {
  // The file is made by us: the user may not write here.
  const std::string out = machine_.write_file(fmt::format("out-{}", runs_.size()), "");
  os::ProcessOptions options;
  options.arguments = {
      "sh", "-c",
      "exec " + as(uid, fmt::format("{} run {} > {} 2>&1", SEPTET_PROGRAM, words, out))};
  Result<os::Process> process = os::Process::start(options);
  CHECK(process.ok());
  runs_.push_back(std::make_unique<os::Process>(*std::move(process)));
  return *runs_.back();
}

std::string LeaseTest::output_of_run(std::size_t index) const {
  return read_file(fmt::format("{}/out-{}", machine_.folder(), index));
}

Outcome LeaseTest::run_as(unsigned uid, const std::string& words) const {
  return machine_.run(as(uid, fmt::format("{} {}", SEPTET_PROGRAM, words)));
}

std::string LeaseTest::shared_file(const std::string& name) const {
  const std::string path = machine_.write_file(name, "");
  chmod(path.c_str(), 0666);
  return path;
}

std::vector<lend::Json> LeaseTest::leases(const std::string& state) const {
  const auto answer = client().call("GET", "/v1/leases");
  std::vector<lend::Json> found;
  if (answer.ok()) {
    for (const lend::Json& lease : (*answer)["leases"]) {
      if (state.empty() || lease["state"] == state) {
        found.push_back(lease);
      }
    }
  }
  return found;
}

bool LeaseTest::has_active(std::size_t count) const {
  return eventually([&] { return leases("active").size() == count; });
}

std::multiset<std::string> LeaseTest::held() const {
  std::multiset<std::string> partitions;
  for (const lend::Json& lease : leases()) {
    for (const lend::Json& holding : lease["holdings"]) {
      partitions.insert(holding["partition"].get<std::string>());
    }
  }
  return partitions;
}

}  // namespace septet::acceptance
