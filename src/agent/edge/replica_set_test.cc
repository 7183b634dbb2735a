// Replicas here are small Python servers on Unix sockets: real processes, real health checks.
#include "agent/edge/replica_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "os/clock.h"
#include "os/owned_folder.h"

namespace septet::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr Duration kPatience = seconds(60);

constexpr const char* kServer = R"(
import os, socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        status = b'200 OK' if line.startswith(b'GET /ready ') else b'400 Bad Request'
        self.wfile.write(b'HTTP/1.1 ' + status + b'\r\nContent-Length: 0\r\n\r\n')
if os.path.exists(sys.argv[1]):
    os.remove(sys.argv[1])
print('listening', flush=True)
socketserver.UnixStreamServer(sys.argv[1], Handler).serve_forever()
)";

class ReplicaSetTest : public ::testing::Test {
 protected:
  ReplicaSetTest() : folder_(os::OwnedFolder::create("replicaset").value()) { restart_set(); }

  void restart_set() {
    replicas_.reset();
    replicas_ = *ReplicaSet::start({.starting_probe_interval = milliseconds(10),
                                    .ready_probe_interval = milliseconds(20),
                                    .first_back_off = milliseconds(10),
                                    .stop_grace = milliseconds(300),
                                    .starts_allowed = 2},
                                   [this](const std::vector<std::string>& ready) {
                                     const std::lock_guard lock(mutex_);
                                     ready_history_.push_back(ready);
                                     changed_.notify_all();
                                   });
  }

  ReplicaSpec spec(const std::string& name, std::vector<std::string> arguments) {
    ReplicaSpec spec;
    spec.name = name;
    spec.process.arguments = std::move(arguments);
    spec.endpoint.unix_path = folder_->path() + "/" + name;
    spec.health_target = "/ready";
    spec.log_path = folder_->path() + "/" + name + ".log";
    return spec;
  }
  ReplicaSpec server(const std::string& name) {
    return spec(name, {"python3", "-c", kServer, folder_->path() + "/" + name});
  }
  Result<Ok> wait_ready() { return replicas_->wait_ready(kPatience, interrupted_); }

  // Waits until the owner was told this set of ready names.
  bool wait_told(const std::vector<std::string>& names) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(
        lock, kPatience, [&] { return !ready_history_.empty() && ready_history_.back() == names; });
  }

  std::unique_ptr<os::OwnedFolder> folder_;
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::string>> ready_history_;
  std::unique_ptr<ReplicaSet> replicas_;  // last: its thread uses what is above
};

TEST_F(ReplicaSetTest, StartsReplicasAndTellsWhenAllAreReady) {
  ASSERT_TRUE(replicas_->add(server("a")).ok());
  ASSERT_TRUE(replicas_->add(server("b")).ok());

  const Result<Ok> ready = wait_ready();

  ASSERT_TRUE(ready.ok()) << ready.error().text();
  EXPECT_TRUE(wait_told({"a", "b"}));
  for (const ReplicaStatus& status : replicas_->status()) {
    EXPECT_EQ(status.state, ReplicaState::kReady);
    EXPECT_EQ(kill(status.pid, 0), 0);
  }
}

TEST_F(ReplicaSetTest, AKilledReplicaIsStartedAgain) {
  ASSERT_TRUE(replicas_->add(server("a")).ok());
  ASSERT_TRUE(wait_ready().ok());
  const pid_t first = replicas_->status().front().pid;

  ASSERT_TRUE(replicas_->send_signal("a", SIGKILL).ok());
  ASSERT_TRUE(wait_told({}));
  ASSERT_TRUE(wait_ready().ok());

  const ReplicaStatus status = replicas_->status().front();
  EXPECT_NE(status.pid, first);
  EXPECT_EQ(status.restarts, 1u);
  EXPECT_THAT(status.last_failure, HasSubstr("signal 9"));
}

TEST_F(ReplicaSetTest, AStoppedReplicaLeavesTheOthersAlone) {
  ASSERT_TRUE(replicas_->add(server("a")).ok());
  ASSERT_TRUE(replicas_->add(server("b")).ok());
  ASSERT_TRUE(wait_ready().ok());

  ASSERT_TRUE(replicas_->stop("a", Duration::zero()).ok());

  EXPECT_TRUE(wait_told({"b"}));
  EXPECT_EQ(replicas_->status()[1].restarts, 0u);
}

TEST_F(ReplicaSetTest, LeavesNoProcessBehind) {
  ASSERT_TRUE(replicas_->add(server("a")).ok());
  // This one does not end when asked.
  ASSERT_TRUE(
      replicas_->add(spec("b", {"sh", "-c", "trap '' TERM; while :; do sleep 600; done"})).ok());
  ASSERT_TRUE(wait_told({"a"}));
  std::vector<pid_t> pids;
  for (const ReplicaStatus& status : replicas_->status()) {
    pids.push_back(status.pid);
  }

  replicas_.reset();

  for (const pid_t pid : pids) {
    EXPECT_EQ(kill(pid, 0), -1) << pid;
  }
}

TEST_F(ReplicaSetTest, SaysWhyAReplicaDoesNotBecomeReadyWithItsLastWords) {
  ASSERT_TRUE(replicas_->add(spec("a", {"sh", "-c", "echo no model here >&2; exit 3"})).ok());

  const Result<Ok> ready = wait_ready();

  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error().message, HasSubstr("exit code 3"));
  EXPECT_THAT(ready.error().message, HasSubstr("no model here"));
}

TEST_F(ReplicaSetTest, AMissingProgramFailsWithItsName) {
  ASSERT_TRUE(replicas_->add(spec("a", {"/no/such/program"})).ok());

  const Result<Ok> ready = wait_ready();

  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error().message, HasSubstr("/no/such/program"));
}

TEST_F(ReplicaSetTest, WaitingEndsWhenInterrupted) {
  ASSERT_TRUE(replicas_->add(spec("a", {"sleep", "600"})).ok());
  interrupted_ = true;

  const Result<Ok> ready = wait_ready();

  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error().message, HasSubstr("interrupted"));
}

TEST_F(ReplicaSetTest, RefusesASecondReplicaOfTheSameNameAndUnknownNames) {
  ASSERT_TRUE(replicas_->add(spec("a", {"sleep", "600"})).ok());

  EXPECT_EQ(replicas_->add(spec("a", {"sleep", "600"})).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(replicas_->stop("b", {}).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(replicas_->send_signal("b", SIGTERM).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace septet::agent
