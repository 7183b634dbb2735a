// The parts of leases that need no daemon, and a ledger for the part that does; tests/bench/lend
// runs both.
//
//   lend_bench              prints one row of a Markdown table per figure: a pass over 1,000
//   waiting
//                           requests; a lease granted and given back (decision and ledger file)
//   lend_bench fill PATH N  writes a ledger of N past leases
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "lend/edge/lease_ground.h"
#include "lend/edge/lender.h"
#include "os/clock.h"
#include "support/ledger_driver.h"

namespace septet {
namespace {

namespace fs = std::filesystem;

constexpr int kRepetitions = 21;

// Milliseconds of each repetition.
void measure(const char* name, double target_ms, const std::function<double()>& once) {
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    times.push_back(once());
  }
  std::sort(times.begin(), times.end());
  fmt::print("| {} | {:.3f} | {:.3f} to {:.3f} | {:g} |\n", name, times[times.size() / 2],
             times.front(), times.back(), target_ms);
}

double milliseconds_of(const std::function<void()>& work) {
  const Instant begin = os::now();
  work();
  return to_seconds(os::now() - begin) * 1000;
}

class NoGround : public lend::LeaseGround {
 public:
  void end_unknown(const std::set<lend::LeaseId>&) override {}
  Result<lend::LeaseSetting> set_up(const lend::Lease&,
                                    const std::vector<lend::Partition>&) override {
    return lend::LeaseSetting{};
  }
  Result<Ok> add_process(lend::LeaseId, pid_t) override { return Ok{}; }
  std::vector<int> processes(lend::LeaseId) override { return {}; }
  void ask_to_end(lend::LeaseId) override {}
  void kill(lend::LeaseId) override {}
  Result<Ok> set_paused(lend::LeaseId, os::Frozen) override { return Ok{}; }
  Result<Ok> take_down(lend::LeaseId) override { return Ok{}; }
  lend::Activity observe(const lend::Lease&) override { return lend::Activity::kUnknown; }
};

class NoListener : public lend::LeaseListener {
 public:
  void on_news(lend::LeaseId, const lend::LeaseNews&) override {}
};

void fill_history(lend::LedgerFile& file, std::uint64_t count) {
  testing::LedgerDriver driver;
  driver.observe(testing::seven_slices());
  lend::Lease lease = driver.lease(driver.ask(testing::LedgerDriver::request(1000, "1g.5gb")));
  lease.state = lend::LeaseState::kEnded;
  std::vector<lend::Lease> batch;
  for (std::uint64_t id = 1; id <= count; ++id) {
    lease.id = lend::LeaseId(id);
    batch.push_back(lease);
    if (batch.size() == 1000 || id == count) {
      CHECK(file.save(batch, lend::read_clocks()).ok());
      batch.clear();
    }
  }
}

void bench_lender(const std::string& folder, std::uint64_t past) {
  os::EventLoop loop;
  auto file = lend::LedgerFile::open(fmt::format("{}/ledger-{}", folder, past));
  CHECK(file.ok());
  fill_history(**file, past);
  NoGround ground;
  NoListener listener;
  lend::LenderOptions options;
  const auto observe = [](const auto&) -> Result<lend::PartitionsObserved> {
    return lend::PartitionsObserved{testing::seven_slices(), {}};
  };
  const auto keep = [](const lend::ChangeLayout& change) {
    return lend::LayoutChangeEnded{change.id, lend::LayoutOutcome::kImpossibleNow, {}};
  };
  auto lender = lend::Lender::start(loop, **file, ground, observe, keep, options);
  CHECK(lender.ok());
  const std::string suffix = fmt::format(" beside {} past leases", past);
  measure(("decided, written, given back, written" + suffix).c_str(), 10, [&] {
    return milliseconds_of([&] {
      const lend::LeaseId id =
          (*lender)->request(testing::LedgerDriver::request(1000, "1g.5gb"), listener);
      CHECK((*lender)->release(id, lend::UserId(1000)).ok());
    });
  });
  measure(("the youngest 50 of history" + suffix).c_str(), 10,
          [&] { return milliseconds_of([&] { CHECK((*lender)->history({}).ok()); }); });
}

void bench_queue() {
  measure("one scheduling pass over 1000 waiting requests, 100 users, 56 slices", 50, [] {
    lend::Policy policy;
    policy.every_user.leases = 50;
    testing::LedgerDriver driver(policy);
    std::vector<lend::Partition> partitions;
    for (unsigned gpu = 0; gpu < 8; ++gpu) {
      for (lend::Partition& each : testing::seven_slices(gpu)) {
        partitions.push_back(std::move(each));
      }
    }
    std::vector<lend::Lease> waiting;
    for (std::uint64_t id = 1; id <= 1000; ++id) {
      lend::Lease lease;
      lease.id = lend::LeaseId(id);
      lease.request = testing::LedgerDriver::queued(testing::LedgerDriver::request(
          1000 + static_cast<unsigned>(id % 100), id % 5 == 0 ? "1g.5gb:3" : "1g.5gb"));
      lease.requested = driver.now();
      waiting.push_back(std::move(lease));
    }
    driver.ledger().restore(driver.now(), std::move(waiting), lend::LeaseId(1001));
    return milliseconds_of([&] {
      driver.ledger().step(driver.now(), lend::PartitionsObserved{partitions, {}});
    });
  });
}

int fill(const std::string& path, std::uint64_t count) {
  auto file = lend::LedgerFile::open(path);
  CHECK(file.ok());
  fill_history(**file, count);
  return 0;
}

int run() {
  std::string pattern = (fs::temp_directory_path() / "septet-lend-bench-XXXXXX").string();
  CHECK(mkdtemp(pattern.data()) != nullptr);
  bench_queue();
  bench_lender(pattern, 0);
  bench_lender(pattern, 100000);
  fs::remove_all(pattern);
  return 0;
}

}  // namespace
}  // namespace septet

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto count =
      words.size() == 3 && words[0] == "fill" ? septet::parse_uint(words[2]) : std::nullopt;
  return count ? septet::fill(words[1], *count) : septet::run();
}
