#include "lend/edge/lender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/clock.h"
#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LedgerDriver;

constexpr Duration kPatience = seconds(30);

// Leases without a machine: processes are numbers that end when asked, unless they are stubborn.
class FakeGround : public LeaseGround {
 public:
  void end_unknown(const std::set<LeaseId>& known) override { known_ = known; }
  Result<LeaseSetting> set_up(const Lease& lease,
                              const std::vector<Partition>& partitions) override {
    if (fails_) {
      return make_error(ErrorKind::kFailed, "the ground is wet");
    }
    set_up_.push_back(lease.id);
    LeaseSetting setting;
    setting.is_enforced = !partitions.empty();
    return setting;
  }
  Result<Ok> add_process(LeaseId lease, pid_t pid) override {
    processes_[lease].push_back(pid);
    return Ok{};
  }
  std::vector<int> processes(LeaseId lease) override { return processes_[lease]; }
  void ask_to_end(LeaseId lease) override {
    asked_.push_back(lease);
    if (!stubborn_) {
      processes_.erase(lease);
    }
  }
  void kill(LeaseId lease) override { processes_.erase(lease); }
  Result<Ok> set_paused(LeaseId, os::Frozen) override { return Ok{}; }
  Result<Ok> take_down(LeaseId lease) override {
    taken_down_.push_back(lease);
    return Ok{};
  }
  Activity observe(const Lease&) override { return activity_; }

  bool fails_ = false;
  bool stubborn_ = false;
  std::set<LeaseId> known_;
  Activity activity_ = Activity::kUnknown;
  std::map<LeaseId, std::vector<int>> processes_;
  std::vector<LeaseId> set_up_;
  std::vector<LeaseId> asked_;
  std::vector<LeaseId> taken_down_;
};

class NewsBook : public LeaseListener {
 public:
  void on_news(LeaseId, const LeaseNews& news) override {
    std::visit([this](const auto& each) { note(each); }, news);
  }
  std::vector<std::string> lines_;
  std::string error_;

 private:
  void note(const TellGranted&) { lines_.emplace_back("granted"); }
  void note(const TellQueued&) { lines_.emplace_back("queued"); }
  void note(const TellRefused& news) {
    lines_.emplace_back("refused");
    error_ = news.error.text();
  }
  void note(const WarnHolder&) { lines_.emplace_back("warned"); }
  void note(const WithdrawWarning&) { lines_.emplace_back("unwarned"); }
  void note(const AskToEnd&) { lines_.emplace_back("ending"); }
  void note(const TellEnded&) { lines_.emplace_back("ended"); }
};

class LenderTest : public ::testing::Test {
 protected:
  LenderTest() {
    std::string pattern = fs::temp_directory_path() / "septet-lender-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/ledger";
  }
  ~LenderTest() override {
    lender_.reset();
    file_.reset();
    if (is_mounted_) {
      umount(folder_.c_str());
    }
    fs::remove_all(folder_);
  }

  void start(LenderOptions options = {}) {
    Result<std::unique_ptr<LedgerFile>> file = LedgerFile::open(path_);
    ASSERT_TRUE(file.ok()) << file.error().text();
    file_ = *std::move(file);
    Result<std::unique_ptr<Lender>> lender = Lender::start(
        loop_, *file_, ground_,
        [this](const auto&) -> Result<PartitionsObserved> {
          return PartitionsObserved{partitions_, {}};
        },
        [](const ChangeLayout& change) {
          return LayoutChangeEnded{change.id, LayoutOutcome::kImpossibleNow, {}};
        },
        options);
    ASSERT_TRUE(lender.ok()) << lender.error().text();
    lender_ = *std::move(lender);
  }
  // The daemon dies: nothing is said to anybody.
  void crash() {
    lender_.reset();
    file_.reset();
  }

  // Serves the loop until it holds.
  bool eventually(const std::function<bool()>& holds) {
    const Instant deadline = os::now() + kPatience;
    std::function<void()> look = [&] {
      if (holds() || os::now() > deadline) {
        loop_.stop();
      } else {
        loop_.call_after(milliseconds(5), look);
      }
    };
    loop_.call_after(Duration::zero(), look);
    loop_.run();
    return holds();
  }

  std::string state(LeaseId id) const {
    const auto found = lender_->ledger().leases().find(id);
    return found == lender_->ledger().leases().end() ? "ended" : to_string(found->second.state);
  }

  os::EventLoop loop_;
  std::string folder_;
  std::string path_;
  bool is_mounted_ = false;
  std::vector<Partition> partitions_ = testing::seven_slices();
  FakeGround ground_;
  std::unique_ptr<LedgerFile> file_;
  std::unique_ptr<Lender> lender_;
  NewsBook news_;
};

TEST_F(LenderTest, GrantsWhatTheGroundCanCarry) {
  start();

  const LeaseId id = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);

  EXPECT_THAT(news_.lines_, ElementsAre("granted"));
  ASSERT_NE(lender_->setting(id), nullptr);
  EXPECT_TRUE(lender_->setting(id)->is_enforced);
}

TEST_F(LenderTest, WhatCannotBeSetUpIsRefusedAndFree) {
  start();
  ground_.fails_ = true;
  const LeaseId id = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);

  EXPECT_THAT(news_.error_, HasSubstr("wet"));
  EXPECT_EQ(state(id), "ended");
  ground_.fails_ = false;
  NewsBook other;
  lender_->request(LedgerDriver::request(1000, "1g.5gb:7"), other);
  EXPECT_THAT(other.lines_, ElementsAre("granted"));
}

TEST_F(LenderTest, AProcessThatDoesNotEndIsKilledAfterTheGrace) {
  LenderOptions options;
  options.policy.kill_grace = milliseconds(50);
  start(options);
  ground_.stubborn_ = true;
  const LeaseId id = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);
  ASSERT_TRUE(ground_.add_process(id, 42).ok());

  ASSERT_TRUE(lender_->release(id, UserId(1000)).ok());

  EXPECT_EQ(state(id), "releasing");
  EXPECT_TRUE(eventually([&] { return state(id) == "ended"; }));
  EXPECT_THAT(ground_.taken_down_, ElementsAre(id));
}

TEST_F(LenderTest, ALeaseSurvivesACrash) {
  start();
  const LeaseId id = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);
  crash();

  start();

  EXPECT_EQ(state(id), "active");
  NewsBook other;
  const LeaseId next = lender_->request(LedgerDriver::request(1001, "1g.5gb:7"), other);
  EXPECT_THAT(other.lines_, ElementsAre("refused"));
  EXPECT_GT(next, id);
}

TEST_F(LenderTest, AnAttachedHolderThatDoesNotComeBackLosesItsLease) {
  LenderOptions options;
  options.adopt_within = milliseconds(20);
  start(options);
  LeaseRequest wanted = LedgerDriver::request(1000, "1g.5gb");
  wanted.is_attached = true;
  const LeaseId gone = lender_->request(wanted, news_);
  const LeaseId back = lender_->request(wanted, news_);
  crash();

  start(options);
  NewsBook returned;
  ASSERT_TRUE(lender_->attach(back, UserId(1000), returned).ok());

  EXPECT_TRUE(eventually([&] { return state(gone) == "ended"; }));
  EXPECT_EQ(state(back), "active");
}

TEST_F(LenderTest, NobodyAttachesToAnothersLease) {
  start();
  const LeaseId id = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);

  NewsBook stranger;

  EXPECT_EQ(lender_->attach(id, UserId(1001), stranger).error().kind, ErrorKind::kPermission);
  EXPECT_EQ(lender_->add_process(id, UserId(1001), getpid()).error().kind, ErrorKind::kPermission);
}

TEST_F(LenderTest, OnlyOwnProcessesAreMoved) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs a process of another user";
  }
  start();
  const LeaseId id = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);

  // This test runs as root, so its process is not user 1000's.
  EXPECT_EQ(lender_->add_process(id, UserId(1000), getpid()).error().kind, ErrorKind::kPermission);
  EXPECT_EQ(lender_->add_process(id, UserId(1000), 0).error().kind, ErrorKind::kNotFound);
}

TEST_F(LenderTest, IdleIsSeenWarnedAndReclaimed) {
  LenderOptions options;
  options.sample_every = milliseconds(5);
  options.policy.idle_grace = milliseconds(20);
  start(options);
  ground_.activity_ = Activity::kIdle;
  LeaseRequest wanted = LedgerDriver::request(1000, "1g.5gb");
  wanted.idle_after = milliseconds(30);
  const LeaseId id = lender_->request(wanted, news_);

  EXPECT_TRUE(eventually([&] { return state(id) == "ended"; }));

  EXPECT_THAT(news_.lines_, ElementsAre("granted", "warned", "ending", "ended"));
}

TEST_F(LenderTest, AFullDiskLendsNothingNewAndEndsNothing) {
  if (mount("septet-test", folder_.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here";
  }
  is_mounted_ = true;
  start();
  const LeaseId before = lender_->request(LedgerDriver::request(1000, "1g.5gb"), news_);
  ASSERT_EQ(state(before), "active");
  {
    std::ofstream filler(folder_ + "/filler");
    const std::string block(4096, 'x');
    while (filler.write(block.data(), 4096) && filler.flush()) {
    }
  }

  // The file's own free pages take a little more; then nothing can be promised.
  NewsBook last;
  for (int i = 0; i < 200 && lender_->trouble().empty(); ++i) {
    NewsBook each;
    const LeaseId id = lender_->request(LedgerDriver::request(1001, "1g.5gb"), each);
    last = each;
    (void)lender_->release(id, UserId(1001));
  }
  NewsBook refused;
  lender_->request(LedgerDriver::request(1001, "1g.5gb"), refused);

  EXPECT_FALSE(lender_->trouble().empty());
  EXPECT_THAT(refused.lines_, ElementsAre("refused"));
  EXPECT_THAT(refused.error_, HasSubstr("disk"));
  EXPECT_EQ(state(before), "active");
  fs::remove(folder_ + "/filler");
  NewsBook again;
  lender_->request(LedgerDriver::request(1001, "1g.5gb"), again);
  EXPECT_THAT(again.lines_, ElementsAre("granted"));
}

}  // namespace
}  // namespace septet::lend
