#include "lend/edge/ledger_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "lend/edge/lease_json.h"
#include "os/clock.h"
#include "os/durable_file.h"

namespace septet::lend {

namespace {

constexpr std::int64_t kApplicationId = 0x73657074;  // "sept"
constexpr std::int64_t kVersion = 1;

// One prepared statement; finalised at the end of its life.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    code_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool valid() const { return code_ == SQLITE_OK; }
  void bind(int index, std::int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  void bind(int index, const std::string& text) {
    sqlite3_bind_text(statement_, index, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  int step() { return sqlite3_step(statement_); }
  void reset() { sqlite3_reset(statement_); }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const {
    const auto* bytes = sqlite3_column_text(statement_, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return bytes == nullptr ? std::string()
                            : std::string(reinterpret_cast<const char*>(bytes), size);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_ERROR;
};

Result<os::UniqueFd> take_lock(const std::string& path) {
  const std::string lock_path = path + ".lock";
  os::UniqueFd fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return make_error(errno == EACCES ? ErrorKind::kPermission : ErrorKind::kFailed,
                      fmt::format("cannot open {}: {}", lock_path, std::strerror(errno)));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> pid{};
    const ssize_t got = pread(fd.get(), pid.data(), pid.size() - 1, 0);
    const std::string_view who = trim(std::string_view(pid.data(), got > 0 ? std::size_t(got) : 0));
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("another daemon has the ledger {} (process {})", path, who),
                      "use it, or stop it first");
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot write {}: {}", lock_path, std::strerror(errno)));
  }
  return fd;
}

// An instant of another boot, carried over by the wall clock; a wall clock that was set back must
// not make a lease longer than it was to be.
Instant carried_over(Instant then, Duration offset_then, const ClockReading& clocks) {
  if (then == Instant{}) {
    return then;
  }
  return Instant(then.time_since_epoch() + offset_then - clocks.unix_offset());
}

void carry_over(Lease& lease, Duration offset_then, const ClockReading& clocks) {
  for (Instant* instant :
       {&lease.requested, &lease.granted, &lease.expires, &lease.last_busy, &lease.deadline}) {
    *instant = carried_over(*instant, offset_then, clocks);
  }
  lease.requested = std::min(lease.requested, clocks.monotonic);
  lease.granted = std::min(lease.granted, clocks.monotonic);
  lease.last_busy = std::min(lease.last_busy, clocks.monotonic);
  if (lease.request.time) {
    lease.expires = std::min(lease.expires, clocks.monotonic + *lease.request.time);
  }
}

}  // namespace

ClockReading read_clocks() {
  ClockReading reading{os::now(), os::unix_time_ns(), {}};
  const Result<std::string> boot = os::read_whole_file("/proc/sys/kernel/random/boot_id");
  reading.boot = boot.ok() ? std::string(trim(*boot)) : std::string("unknown");
  return reading;
}

Result<std::unique_ptr<LedgerFile>> LedgerFile::open(const std::string& path) {
  Result<os::UniqueFd> lock = take_lock(path);
  SEPTET_TRY(lock);
  std::unique_ptr<LedgerFile> file(new LedgerFile(path, *std::move(lock)));
  SEPTET_TRY(file->open_database());
  return file;
}

LedgerFile::~LedgerFile() { sqlite3_close(database_); }

Error LedgerFile::sqlite_error(const std::string& what) const {
  const int code = sqlite3_errcode(database_);
  const char* hint = code == SQLITE_FULL || code == SQLITE_IOERR
                         ? "make room on the disk; nothing new is lent until it can be written"
                         : "";
  return make_error(
      ErrorKind::kFailed,
      fmt::format("cannot {} the ledger {}: {}", what, path_, sqlite3_errmsg(database_)), hint);
}

Error LedgerFile::damaged(const std::string& why) const {
  return make_error(
      ErrorKind::kFailed, fmt::format("the ledger {} is not usable: {}", path_, why),
      fmt::format(
          "it was left as it is; move {0}, {0}-wal and {0}-shm away, then bring back a copy, "
          "or start without one: that forgets all leases and ends what runs on them",
          path_));
}

Result<Ok> LedgerFile::execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return sqlite_error("write");
  }
  return Ok{};
}

Result<std::int64_t> LedgerFile::number(const char* sql) {
  Statement statement(database_, sql);
  if (!statement.valid() || statement.step() != SQLITE_ROW) {
    return sqlite_error("read");
  }
  return statement.number(0);
}

Result<Ok> LedgerFile::open_database() {
  struct stat status {};
  const bool is_new = stat(path_.c_str(), &status) != 0 || status.st_size == 0;
  const mode_t mask = umask(0077);  // leases name people: for the daemon only
  const int code =
      sqlite3_open_v2(path_.c_str(), &database_,
                      SQLITE_OPEN_READWRITE | (is_new ? SQLITE_OPEN_CREATE : 0), nullptr);
  umask(mask);
  if (code != SQLITE_OK) {
    return sqlite_error("open");
  }
  if (!is_new) {
    SEPTET_TRY(check_database());
  }
  // WAL with NORMAL loses nothing when the daemon dies, and costs no disk flush per lease.
  SEPTET_TRY(execute("PRAGMA journal_mode=WAL"));
  SEPTET_TRY(execute("PRAGMA synchronous=NORMAL"));
  return is_new ? make_tables() : Ok{};
}

Result<Ok> LedgerFile::check_database() {
  Statement check(database_, "PRAGMA quick_check(1)");
  if (!check.valid() || check.step() != SQLITE_ROW) {
    return damaged(sqlite3_errmsg(database_));
  }
  if (const std::string found = check.text(0); found != "ok") {
    return damaged(found);
  }
  const Result<std::int64_t> application = number("PRAGMA application_id");
  SEPTET_TRY(application);
  if (*application != kApplicationId) {
    return damaged("it is a database of another program");
  }
  const Result<std::int64_t> version = number("PRAGMA user_version");
  SEPTET_TRY(version);
  if (*version != kVersion) {
    return damaged(
        fmt::format("it has format {}, this program reads format {}", *version, kVersion));
  }
  return Ok{};
}

Result<Ok> LedgerFile::make_tables() {
  return execute(
      "BEGIN IMMEDIATE;"
      "PRAGMA application_id = 1936027764;"
      "PRAGMA user_version = 1;"
      "CREATE TABLE leases("
      "  id INTEGER PRIMARY KEY, ended INTEGER NOT NULL, user TEXT NOT NULL,"
      "  boot TEXT NOT NULL, saved_ns INTEGER NOT NULL, unix_offset_ns INTEGER NOT NULL,"
      "  data TEXT NOT NULL) STRICT;"
      "CREATE INDEX running ON leases(id) WHERE ended = 0;"
      "CREATE INDEX by_user ON leases(user, id) WHERE ended = 1;"
      "COMMIT;");
}

Result<LoadedLedger> LedgerFile::load(const ClockReading& clocks) {
  LoadedLedger loaded;
  Statement rows(database_,
                 "SELECT data, boot, unix_offset_ns FROM leases WHERE ended = 0 ORDER BY id");
  if (!rows.valid()) {
    return sqlite_error("read");
  }
  int code = SQLITE_ROW;
  while ((code = rows.step()) == SQLITE_ROW) {
    const Result<Json> json = parse_json(rows.text(0));
    if (!json.ok()) {
      return damaged("a lease in it is not JSON");
    }
    Result<Lease> lease = lease_from_json(*json);
    if (!lease.ok()) {
      return damaged(lease.error().message);
    }
    if (rows.text(1) != clocks.boot) {
      carry_over(*lease, Duration(rows.number(2)), clocks);
    }
    loaded.leases.push_back(*std::move(lease));
  }
  if (code != SQLITE_DONE) {
    return sqlite_error("read");
  }
  const Result<std::int64_t> last = number("SELECT coalesce(max(id), 0) FROM leases");
  SEPTET_TRY(last);
  loaded.next_id = LeaseId(static_cast<std::uint64_t>(*last) + 1);
  return loaded;
}

Result<Ok> LedgerFile::save(const std::vector<Lease>& leases, const ClockReading& clocks) {
  SEPTET_TRY(execute("BEGIN IMMEDIATE"));
  Statement insert(database_,
                   "INSERT OR REPLACE INTO leases"
                   "(id, ended, user, boot, saved_ns, unix_offset_ns, data) VALUES(?,?,?,?,?,?,?)");
  bool good = insert.valid();
  for (const Lease& lease : leases) {
    if (!good) {
      break;
    }
    insert.reset();
    insert.bind(1, static_cast<std::int64_t>(lease.id.value()));
    insert.bind(2, lease.state == LeaseState::kEnded ? 1 : 0);
    insert.bind(3, lease.request.owner.user);
    insert.bind(4, clocks.boot);
    insert.bind(5, clocks.monotonic.time_since_epoch().count());
    insert.bind(6, clocks.unix_offset().count());
    insert.bind(7, to_json(lease, Duration::zero()).dump());
    good = insert.step() == SQLITE_DONE;
  }
  insert.reset();
  if (good && sqlite3_exec(database_, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK) {
    return Ok{};
  }
  Error error = sqlite_error("write");
  sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  return error;
}

Result<std::vector<HistoryEntry>> LedgerFile::history(const HistoryQuery& query) {
  Statement rows(database_,
                 query.user ? "SELECT data, saved_ns, unix_offset_ns FROM leases WHERE ended = 1 "
                              "AND user = ?2 ORDER BY id DESC LIMIT ?1"
                            : "SELECT data, saved_ns, unix_offset_ns FROM leases WHERE ended = 1 "
                              "ORDER BY id DESC LIMIT ?1");
  if (!rows.valid()) {
    return sqlite_error("read");
  }
  rows.bind(1, query.most);
  if (query.user) {
    rows.bind(2, *query.user);
  }
  std::vector<HistoryEntry> entries;
  int code = SQLITE_ROW;
  while ((code = rows.step()) == SQLITE_ROW) {
    const Result<Json> json = parse_json(rows.text(0));
    const Result<Lease> lease = json.ok() ? lease_from_json(*json) : Result<Lease>(json.error());
    SEPTET_TRY(lease);
    const std::int64_t offset = rows.number(2);
    const auto unix_ns = [&](Instant instant) {
      return instant == Instant{} ? 0 : instant.time_since_epoch().count() + offset;
    };
    entries.push_back(
        {*lease, unix_ns(lease->requested), unix_ns(lease->granted), rows.number(1) + offset});
  }
  if (code != SQLITE_DONE) {
    return sqlite_error("read");
  }
  return entries;
}

Result<std::uint64_t> LedgerFile::count_history() {
  const Result<std::int64_t> count = number("SELECT count(*) FROM leases WHERE ended = 1");
  SEPTET_TRY(count);
  return static_cast<std::uint64_t>(*count);
}

}  // namespace septet::lend
