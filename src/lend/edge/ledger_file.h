// LedgerFile: the ledger on disk, one SQLite file in WAL mode; one daemon at a time.
//
// Owned by the Lender, used by its thread. What save() has returned from survives the death of the
// daemon; after a loss of power the last moments may be missing, but never half a change. A damaged
// file, one of another program or version is refused and left exactly as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lend/types.h"
#include "os/unique_fd.h"

struct sqlite3;

namespace septet::lend {

// The two clocks at one moment, and the boot they belong to.
struct ClockReading {
  Instant monotonic{};
  std::int64_t unix_ns = 0;
  std::string boot;

  Duration unix_offset() const { return Duration(unix_ns) - monotonic.time_since_epoch(); }
};
ClockReading read_clocks();

struct LoadedLedger {
  std::vector<Lease> leases;  // that had not ended; instants are of this boot
  LeaseId next_id{1};
};

// A lease that has ended.
struct HistoryEntry {
  Lease lease;
  std::int64_t requested_unix_ns = 0;
  std::int64_t granted_unix_ns = 0;  // 0 = never
  std::int64_t ended_unix_ns = 0;
};

struct HistoryQuery {
  std::optional<std::string> user;
  unsigned most = 50;
};

class LedgerFile {
 public:
  // Opens or makes it. kPrecondition when another daemon has it, kFailed when it is damaged.
  static Result<std::unique_ptr<LedgerFile>> open(const std::string& path);
  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;

  Result<LoadedLedger> load(const ClockReading& clocks);
  // All of them or none.
  Result<Ok> save(const std::vector<Lease>& leases, const ClockReading& clocks);
  // The youngest first.
  Result<std::vector<HistoryEntry>> history(const HistoryQuery& query);
  Result<std::uint64_t> count_history();

 private:
  LedgerFile(std::string path, os::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  Result<Ok> open_database();
  Result<Ok> check_database();
  Result<Ok> make_tables();
  Result<Ok> execute(const char* sql);
  Result<std::int64_t> number(const char* sql);
  Error sqlite_error(const std::string& what) const;
  Error damaged(const std::string& why) const;

  std::string path_;
  os::UniqueFd lock_;
  sqlite3* database_ = nullptr;
};

}  // namespace septet::lend
