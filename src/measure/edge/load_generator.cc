#include "measure/edge/load_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "measure/edge/grpc_client.h"
#include "measure/edge/load_driver.h"
#include "measure/edge/load_setup.h"
#include "measure/edge/statistics_poller.h"
#include "measure/level_recorder.h"
#include "os/clock.h"

namespace septet::measure {

namespace {

using CallStyle = GrpcClient::CallStyle;

constexpr Duration kStopCheck = milliseconds(20);
// How long the last statistics of a level are waited for.
constexpr Duration kStatisticsPatience = seconds(2);
// How long answers in flight are waited for: between open-loop levels, whose backlog would spoil
// the next one, and at the end, so that no server has to write into a closed connection.
constexpr Duration kBacklogPatience = seconds(10);
constexpr Duration kLastPatience = seconds(2);
// A window that waits for answers in vain ends after this many nominal lengths.
constexpr int kLongestWindow = 12;
// Above this share of a core the generator may be what limits the throughput.
constexpr double kBusyGenerator = 0.85;
// Requests that leave later than this, and later than this share of the median latency, are late.
constexpr double kToleratedLagUs = 250;
constexpr double kToleratedLagShare = 0.01;

bool generator_bound(const LevelResult& result) {
  const bool late = result.level.mode != LoadMode::kConcurrency &&
                    result.send_lag_p99_us > kToleratedLagUs &&
                    result.send_lag_p99_us > kToleratedLagShare * result.p50_us();
  return result.generator_busy > kBusyGenerator || late;
}

}  // namespace

class LoadGenerator::Impl final : private LoadDriver::Observer {
 public:
  Impl(LoadSetup setup, const MeasurementRules& rules, const GeneratorOptions& options,
       int batch_size)
      : regions_(std::move(setup.regions)),
        rules_(rules),
        options_(options),
        batch_size_(batch_size),
        description_(std::move(setup.description)),
        feed_(std::move(setup.feed)),
        driver_(loop_, driver_settings(setup.target), *feed_, *this),
        poller_(loop_, poller_settings(setup.target)) {
    if (options_.metrics) {
      metrics_.emplace(loop_, *options_.metrics,
                       [this](const GpuReading& reading) { recorder_->read_gpus(reading); });
    }
  }

  LevelResult run(const Level& level, const std::atomic<bool>& stop);
  void drain(Duration patience, const std::atomic<bool>& stop);

  const TargetDescription& description() const { return description_; }
  const MeasurementRules& rules() const { return rules_; }

  LevelTimes take_times() { return std::exchange(times_, {}); }

  OnWindow on_window_;

 private:
  void on_answer(const AnsweredRequest& answer) override;
  void on_failure(FailureKind kind, const std::string& reason) override;
  void on_sent_late(Duration lag) override { recorder_->sent_late(lag); }

  LoadDriver::Settings driver_settings(const Target& target) const {
    LoadDriver::Settings settings;
    settings.make_client = client_factory(
        target, target.protocol == Protocol::kGrpcStream ? CallStyle::kStream : CallStyle::kUnary);
    settings.endpoints = target.endpoints;
    settings.one_turn_each = description_.model.is_sequence_model;
    settings.max_connections =
        description_.model.is_sequence_model ? options_.live_sequences : options_.max_connections;
    settings.request_timeout = rules_.request_timeout;
    return settings;
  }
  StatisticsPoller::Settings poller_settings(const Target& target) const {
    StatisticsPoller::Settings settings;
    settings.servers = accesses_of(target);
    settings.model = target.model;
    settings.version = target.version;
    settings.parts = description_.model.parts;
    settings.grpc = target.protocol != Protocol::kHttp;
    settings.make_client = client_factory(target, CallStyle::kUnary);
    return settings;
  }
  void start_load();
  void warm_up_by_one();
  void measure_if_warm();
  void start_measuring();
  void arm_window();
  void end_window_if_full();
  void end_window();
  void take_snapshot();
  void finish(LevelVerdict verdict);
  void leave();
  void watch_stop(const std::atomic<bool>& stop);
  double busy_share(const LevelResult& result) const;

  std::unique_ptr<SharedRegions> regions_;  // first: unregistered when the load is gone
  os::EventLoop loop_;
  MeasurementRules rules_;
  GeneratorOptions options_;
  int batch_size_;
  TargetDescription description_;
  std::unique_ptr<RequestFeed> feed_;
  LoadDriver driver_;
  StatisticsPoller poller_;
  std::optional<MetricsPoller> metrics_;

  // Of the level in hand.
  Level level_;
  std::optional<LevelRecorder> recorder_;
  std::vector<Duration> cpu_time_;  // at every boundary
  std::uint64_t needed_ = 0;        // answers that a window must have
  Instant earliest_end_{};
  os::EventLoop::Timer window_timer_;
  os::EventLoop::Timer early_timer_;
  os::EventLoop::Timer stop_timer_;
  std::size_t snapshots_missing_ = 0;
  bool finished_ = false;
  bool interrupted_ = false;
  LevelVerdict verdict_ = LevelVerdict::kContinue;
  std::string last_failure_;
  bool warm_up_time_over_ = false;
  std::uint64_t warm_up_left_ = 0;  // answers
  LevelTimes times_;
};

void LoadGenerator::Impl::on_answer(const AnsweredRequest& answer) {
  recorder_->answered(answer);
  if (options_.keep_times && !finished_ && !times_.boundaries.empty()) {
    times_.requests.push_back(answer.times);
  }
  warm_up_by_one();
  end_window_if_full();
}

void LoadGenerator::Impl::on_failure(FailureKind kind, const std::string& reason) {
  recorder_->failed(kind);
  last_failure_ = reason;
  warm_up_by_one();
}

// A request of the warm-up has ended, well or badly.
void LoadGenerator::Impl::warm_up_by_one() {
  if (warm_up_left_ > 0 && --warm_up_left_ == 0) {
    measure_if_warm();
  }
}

void LoadGenerator::Impl::measure_if_warm() {
  if (warm_up_time_over_ && warm_up_left_ == 0) {
    start_measuring();
  }
}

void LoadGenerator::Impl::start_load() {
  switch (level_.mode) {
    case LoadMode::kConcurrency:
      driver_.run_closed(static_cast<std::size_t>(level_.value));
      return;
    case LoadMode::kRequestRate:
      driver_.run_open(options_.distribution == RequestDistribution::kPoisson
                           ? LoadSchedule::poisson(level_.value, options_.seed)
                           : LoadSchedule::constant(level_.value));
      return;
    case LoadMode::kIntervals:
      driver_.run_open(LoadSchedule::intervals(options_.intervals));
      return;
  }
}

void LoadGenerator::Impl::start_measuring() {
  const Instant now = os::now();
  recorder_->start(now);
  times_.boundaries.push_back(now);
  cpu_time_ = {os::thread_cpu_time()};
  take_snapshot();
  arm_window();
  if (metrics_) {
    metrics_->start();
  }
}

void LoadGenerator::Impl::arm_window() {
  const Duration nominal = from_seconds(to_seconds(rules_.window) * rules_.window_stretch);
  const Instant now = os::now();
  // A count window may end at any time; every window that waits for answers ends in the end.
  earliest_end_ = rules_.requests_per_window ? now : now + nominal;
  const Instant latest_end = now + kLongestWindow * nominal;
  window_timer_ =
      loop_.call_at(needed_ == 0 ? earliest_end_ : latest_end, [this] { end_window(); });
  if (needed_ > 0) {
    early_timer_ = loop_.call_at(earliest_end_, [this] { end_window_if_full(); });
  }
}

void LoadGenerator::Impl::end_window_if_full() {
  if (needed_ > 0 && !finished_ && !cpu_time_.empty() &&
      recorder_->completed_in_window() >= needed_ && loop_.now() >= earliest_end_) {
    end_window();
  }
}

void LoadGenerator::Impl::end_window() {
  loop_.cancel(window_timer_);
  loop_.cancel(early_timer_);
  const Instant now = os::now();
  const LevelVerdict verdict = recorder_->end_window(now);
  times_.boundaries.push_back(now);
  cpu_time_.push_back(os::thread_cpu_time());
  take_snapshot();
  if (on_window_) {
    on_window_(level_, recorder_->windows());
  }
  if (verdict == LevelVerdict::kContinue) {
    arm_window();
  } else {
    finish(verdict);
  }
}

void LoadGenerator::Impl::take_snapshot() {
  if (!description_.has_statistics()) {
    return;
  }
  ++snapshots_missing_;
  poller_.ask([this, boundary = recorder_->windows_closed()](const ServerSnapshot* snapshot) {
    if (snapshot != nullptr) {
      recorder_->server_snapshot(boundary, *snapshot);
    }
    --snapshots_missing_;
    if (finished_) {
      leave();
    }
  });
}

// The level is decided; it ends when the last snapshot is in.
void LoadGenerator::Impl::finish(LevelVerdict verdict) {
  verdict_ = verdict;
  finished_ = true;
  window_timer_ = loop_.call_after(kStatisticsPatience, [this] {
    snapshots_missing_ = 0;
    leave();
  });
  leave();
}

void LoadGenerator::Impl::leave() {
  if (snapshots_missing_ == 0) {
    loop_.stop();
  }
}

void LoadGenerator::Impl::watch_stop(const std::atomic<bool>& stop) {
  stop_timer_ = loop_.call_after(kStopCheck, [this, &stop] {
    if (stop.load()) {
      interrupted_ = true;
      finished_ = true;
      loop_.stop();
      return;
    }
    watch_stop(stop);
  });
}

double LoadGenerator::Impl::busy_share(const LevelResult& result) const {
  const auto merged = static_cast<std::size_t>(
      std::count_if(result.windows.begin(), result.windows.end(),
                    [](const WindowResult& window) { return window.merged; }));
  const double length = to_seconds(result.measured);
  if (merged == 0 || length <= 0 || cpu_time_.size() <= merged) {
    return 0;
  }
  return to_seconds(cpu_time_.back() - cpu_time_[cpu_time_.size() - 1 - merged]) / length;
}

LevelResult LoadGenerator::Impl::run(const Level& level, const std::atomic<bool>& stop) {
  level_ = level;
  recorder_.emplace(level, rules_, batch_size_);
  cpu_time_.clear();
  times_ = {};
  needed_ = requests_needed(rules_, level);
  snapshots_missing_ = 0;
  finished_ = false;
  interrupted_ = false;
  verdict_ = LevelVerdict::kUnstable;
  last_failure_.clear();
  warm_up_time_over_ = false;
  warm_up_left_ = rules_.warm_up_requests;
  watch_stop(stop);
  start_load();
  os::EventLoop::Timer warm_up = loop_.call_after(rules_.warm_up, [this] {
    warm_up_time_over_ = true;
    measure_if_warm();
  });
  loop_.run();

  loop_.cancel(warm_up);
  loop_.cancel(window_timer_);
  loop_.cancel(early_timer_);
  loop_.cancel(stop_timer_);
  poller_.forget();
  if (metrics_) {
    metrics_->stop();
  }
  if (interrupted_ && !cpu_time_.empty()) {
    const Instant now = os::now();
    recorder_->end_window(now);
    times_.boundaries.push_back(now);
    cpu_time_.push_back(os::thread_cpu_time());
  }
  LevelResult result = recorder_->result(verdict_);
  result.interrupted = interrupted_;
  result.has_response_cache = description_.model.has_response_cache;
  result.last_failure = last_failure_;
  result.generator_busy = busy_share(result);
  result.generator_bound = generator_bound(result);
  if (level.mode != LoadMode::kConcurrency) {
    drain(kBacklogPatience, stop);
  }
  return result;
}

void LoadGenerator::Impl::drain(Duration patience, const std::atomic<bool>& stop) {
  driver_.pause();
  bool waiting = !stop.load();
  if (waiting) {
    interrupted_ = false;
    finished_ = true;
    watch_stop(stop);
    os::EventLoop::Timer give_up = loop_.call_after(patience, [this] { loop_.stop(); });
    driver_.when_idle([this] { loop_.stop(); });
    loop_.run();
    loop_.cancel(give_up);
    loop_.cancel(stop_timer_);
  }
  if (driver_.in_flight() > 0) {
    driver_.close_all();
  }
}

LoadGenerator::LoadGenerator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadGenerator::~LoadGenerator() = default;

const TargetDescription& LoadGenerator::description() const { return impl_->description(); }

void LoadGenerator::on_window(OnWindow callback) { impl_->on_window_ = std::move(callback); }

LevelResult LoadGenerator::run_level(const Level& level, const std::atomic<bool>& stop) {
  return impl_->run(level, stop);
}

LevelTimes LoadGenerator::take_times() { return impl_->take_times(); }

void LoadGenerator::stop_load(const std::atomic<bool>& stop) { impl_->drain(kLastPatience, stop); }

const MeasurementRules& LoadGenerator::rules() const { return impl_->rules(); }

Result<std::unique_ptr<LoadGenerator>> LoadGenerator::open(const Target& target,
                                                           const InputOptions& input,
                                                           const MeasurementRules& rules,
                                                           const GeneratorOptions& options) {
  Result<LoadSetup> setup = set_up_load(target, input, options);
  if (!setup.ok()) {
    return setup.error();
  }
  auto impl = std::make_unique<Impl>(*std::move(setup), rules, options, input.batch_size);
  return std::unique_ptr<LoadGenerator>(new LoadGenerator(std::move(impl)));
}

void run_sweep(LoadGenerator& generator, LevelSweep sweep, const std::atomic<bool>& stop,
               const std::function<void(const LevelResult&)>& on_level) {
  for (std::optional<Level> level = sweep.next(); level && !stop.load(); level = sweep.next()) {
    const LevelResult result = generator.run_level(*level, stop);
    if (!result.interrupted || result.completed > 0) {
      on_level(result);
    }
    sweep.finished(result);
  }
  generator.stop_load(stop);
}

}  // namespace septet::measure
