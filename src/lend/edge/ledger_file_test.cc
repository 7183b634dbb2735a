#include "lend/edge/ledger_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lend/edge/lease_json.h"
#include "support/ledger_driver.h"

namespace septet::lend {
namespace {

using testing::LedgerDriver;

class LedgerFileTest : public ::testing::Test {
 protected:
  LedgerFileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "septet-ledger-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/ledger.sqlite";
  }
  ~LedgerFileTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<LedgerFile> open() {
    Result<std::unique_ptr<LedgerFile>> file = LedgerFile::open(path_);
    if (!file.ok()) {
      ADD_FAILURE() << file.error().text();
      std::abort();
    }
    return *std::move(file);
  }

  static ClockReading clocks(std::int64_t monotonic_s, std::int64_t unix_s,
                             const char* boot = "boot-1") {
    return {Instant(seconds(monotonic_s)), unix_s * 1'000'000'000, boot};
  }

  // A running lease, as a ledger would write it at second 1000.
  static Lease lease(std::uint64_t id, unsigned uid = 1000) {
    LedgerDriver driver;
    driver.observe(testing::seven_slices());
    LeaseRequest wanted = LedgerDriver::request(uid, "1g.5gb");
    wanted.idle_after = std::chrono::minutes(30);
    wanted.purpose = "a \"quoted\" purpose\n\xc3\xa9";
    wanted.owner.groups = {"vision", "audio"};
    Lease result = driver.lease(driver.ask(wanted));
    result.id = LeaseId(id);
    return result;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(LedgerFileTest, KeepsEveryFieldOfALease) {
  const Lease written = lease(7);
  ASSERT_TRUE(open()->save({written}, clocks(1000, 5000)).ok());

  const Result<LoadedLedger> loaded = open()->load(clocks(1001, 5001));

  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  ASSERT_EQ(loaded->leases.size(), 1U);
  EXPECT_EQ(loaded->leases[0], written);
  EXPECT_EQ(loaded->next_id, LeaseId(8));
}

TEST_F(LedgerFileTest, AClockThatWasSetChangesNothingWithinABoot) {
  const Lease written = lease(1);
  ASSERT_TRUE(open()->save({written}, clocks(1000, 5000)).ok());

  const Result<LoadedLedger> loaded = open()->load(clocks(1010, 999999));

  EXPECT_EQ(loaded->leases[0].expires, written.expires);
}

TEST_F(LedgerFileTest, TimesAreCarriedOverAReboot) {
  const Lease written = lease(1);  // expires at second 4600, unix 8600
  ASSERT_TRUE(open()->save({written}, clocks(1000, 5000)).ok());

  const Result<LoadedLedger> loaded = open()->load(clocks(20, 5600, "boot-2"));

  EXPECT_EQ(loaded->leases[0].expires, Instant(seconds(20 + 3000)));
}

TEST_F(LedgerFileTest, AClockSetBackOverARebootDoesNotLengthenALease) {
  ASSERT_TRUE(open()->save({lease(1)}, clocks(1000, 5000)).ok());

  const Result<LoadedLedger> loaded = open()->load(clocks(20, 100, "boot-2"));

  EXPECT_LE(loaded->leases[0].expires, Instant(seconds(20)) + std::chrono::hours(1));
  EXPECT_LE(loaded->leases[0].requested, Instant(seconds(20)));
}

TEST_F(LedgerFileTest, EndedLeasesAreHistoryAndTheirIdsAreNotUsedAgain) {
  Lease first = lease(1);
  Lease second = lease(2, 1001);
  first.state = LeaseState::kEnded;
  second.state = LeaseState::kEnded;
  const auto file = open();
  ASSERT_TRUE(file->save({first, second}, clocks(1000, 5000)).ok());

  const auto all = file->history({});
  const auto of_one = file->history({.user = "user1001"});

  ASSERT_TRUE(all.ok()) << all.error().text();
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].lease.id, LeaseId(2));
  EXPECT_EQ((*all)[0].ended_unix_ns, 5000'000'000'000);
  ASSERT_EQ(of_one->size(), 1U);
  EXPECT_EQ(file->load(clocks(1, 1))->next_id, LeaseId(3));
}

TEST_F(LedgerFileTest, ASecondDaemonIsRefusedAndNamesTheFirst) {
  const auto first = open();

  const auto second = LedgerFile::open(path_);

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kPrecondition);
  EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos);
}

TEST_F(LedgerFileTest, ADamagedFileIsRefusedAndLeftAsItIs) {
  {
    const auto file = open();
    std::vector<Lease> many;
    for (std::uint64_t id = 1; id <= 200; ++id) {
      many.push_back(lease(id));
    }
    ASSERT_TRUE(file->save(many, clocks(1000, 5000)).ok());
  }
  // The middle of the file is overwritten.
  std::fstream stream(path_, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(8192);
  stream << std::string(20000, 'x');
  stream.close();
  const auto size = std::filesystem::file_size(path_);

  const auto damaged = LedgerFile::open(path_);

  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().hint.find("left as it is"), std::string::npos)
      << damaged.error().text();
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  // What the hint says works.
  for (const char* part : {"", "-wal", "-shm"}) {
    std::error_code absent;
    std::filesystem::rename(path_ + part, folder_ + "/damaged" + part, absent);
  }
  EXPECT_TRUE(open()->load(clocks(1000, 5000))->leases.empty());
}

TEST_F(LedgerFileTest, AFileOfAnotherKindIsRefusedAndLeftAsItIs) {
  std::ofstream(path_) << "these are my notes about GPUs";

  const auto file = LedgerFile::open(path_);

  ASSERT_FALSE(file.ok());
  std::ifstream text(path_);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(text)), {}),
            "these are my notes about GPUs");
}

TEST_F(LedgerFileTest, ANewerFormatIsRefused) {
  open();
  // user_version is the big-endian number at byte 60 of the file (SQLite file format, 1.3).
  std::fstream stream(path_, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(63);
  stream.put('\x09');
  stream.close();

  const auto file = LedgerFile::open(path_);

  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("format 9"), std::string::npos) << file.error().text();
}

TEST_F(LedgerFileTest, IsForTheDaemonOnly) {
  open();

  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0U);
}

}  // namespace
}  // namespace septet::lend
