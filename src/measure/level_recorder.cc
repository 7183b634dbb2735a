#include "measure/level_recorder.h"

#include <utility>

#include "base/check.h"

namespace septet::measure {

namespace {

constexpr Duration kDelayedAfter = milliseconds(1);

}  // namespace

LevelRecorder::LevelRecorder(const Level& level, const MeasurementRules& rules, int batch_size)
    : level_(level), rules_(rules), batch_size_(batch_size) {}

void LevelRecorder::start(Instant now) {
  CHECK(!started_);
  started_ = true;
  level_start_ = now;
  window_start_ = now;
  open_ = Window{};
}

void LevelRecorder::answered(const AnsweredRequest& request) {
  if (!started_) {
    return;
  }
  ++open_.result.completed;
  open_.latency.record(request.latency);
  open_.sent_latency.record(request.sent_latency);
  open_.send_ns += static_cast<double>(request.send.count());
  open_.receive_ns += static_cast<double>(request.receive.count());
  open_.sequences += request.ends_sequence ? 1 : 0;
}

void LevelRecorder::failed(FailureKind kind) {
  if (started_) {
    open_.result.failures.add(kind);
  }
}

void LevelRecorder::sent_late(Duration lag) {
  if (started_) {
    open_.send_lag.record(lag);
    open_.result.delayed += lag > kDelayedAfter ? 1 : 0;
  }
}

void LevelRecorder::read_gpus(const GpuReading& reading) {
  if (started_) {
    if (!open_.gpus) {
      open_.gpus.emplace();
    }
    open_.gpus->add(reading);
  }
}

double LevelRecorder::judged_us(const Window& window) const {
  return rules_.percentile ? window.latency.percentile_ns(*rules_.percentile) / 1e3
                           : window.latency.mean_ns() / 1e3;
}

LevelVerdict LevelRecorder::end_window(Instant now) {
  CHECK(started_ && now >= window_start_);
  WindowResult& result = open_.result;
  result.start = window_start_ - level_start_;
  result.duration = now - window_start_;
  const double length = to_seconds(result.duration);
  result.throughput = length > 0 ? static_cast<double>(result.completed) * batch_size_ / length : 0;
  result.mean_latency_us = open_.latency.mean_ns() / 1e3;
  result.deviation_us = open_.latency.standard_deviation_ns() / 1e3;
  result.judged_latency_us = judged_us(open_);
  closed_.push_back(std::exchange(open_, Window{}));
  window_start_ = now;
  return judge(windows(), rules_);
}

std::vector<WindowResult> LevelRecorder::windows() const {
  std::vector<WindowResult> results;
  results.reserve(closed_.size());
  for (const Window& window : closed_) {
    results.push_back(window.result);
  }
  return results;
}

void LevelRecorder::server_snapshot(std::size_t boundary, const ServerSnapshot& snapshot) {
  snapshots_[boundary] = snapshot;
}

void LevelRecorder::merge_windows(std::size_t first, LevelResult& result) const {
  std::vector<double> throughputs;
  std::vector<double> latencies;
  Histogram send_lag;
  double send_ns = 0;
  double receive_ns = 0;
  for (std::size_t i = first; i < closed_.size(); ++i) {
    const Window& window = closed_[i];
    result.windows[i].merged = true;
    result.measured += window.result.duration;
    result.completed += window.result.completed;
    result.failures.merge(window.result.failures);
    result.delayed += window.result.delayed;
    result.sequences += window.sequences;
    result.latency.merge(window.latency);
    result.sent_latency.merge(window.sent_latency);
    send_lag.merge(window.send_lag);
    if (window.gpus) {
      if (!result.gpus) {
        result.gpus.emplace();
      }
      result.gpus->merge(*window.gpus);
    }
    send_ns += window.send_ns;
    receive_ns += window.receive_ns;
    throughputs.push_back(window.result.throughput);
    latencies.push_back(window.result.judged_latency_us);
  }
  const double length = to_seconds(result.measured);
  const auto completed = static_cast<double>(result.completed);
  result.throughput = length > 0 ? completed * batch_size_ / length : 0;
  result.throughput_interval = confidence_interval(throughputs);
  result.latency_interval = confidence_interval(latencies);
  result.mean_send_us = completed > 0 ? send_ns / completed / 1e3 : 0;
  result.mean_receive_us = completed > 0 ? receive_ns / completed / 1e3 : 0;
  result.send_lag_p99_us = send_lag.percentile_ns(99) / 1e3;
  result.in_flight_mean = length > 0 ? completed / length * result.sent_latency.mean_ns() / 1e9 : 0;
}

LevelResult LevelRecorder::result(LevelVerdict verdict) const {
  LevelResult result;
  result.level = level_;
  result.batch_size = batch_size_;
  result.percentile = rules_.percentile;
  result.windows = windows();
  const std::size_t merged = windows_to_merge(result.windows, rules_);
  const std::size_t first = closed_.size() - merged;
  merge_windows(first, result);
  result.stable = verdict == LevelVerdict::kStable;
  result.over_limit = rules_.latency_limit > Duration::zero() &&
                      (verdict == LevelVerdict::kOverLimit ||
                       result.judged_latency_us() > to_microseconds(rules_.latency_limit));
  const auto before = snapshots_.find(first);
  const auto after = snapshots_.find(closed_.size());
  if (merged > 0 && before != snapshots_.end() && after != snapshots_.end()) {
    result.has_server_statistics = true;
    const ServerSnapshot& end = after->second;
    const ServerSnapshot& begin = before->second;
    result.server = ServerStatistics::difference(end.model, begin.model);
    for (std::size_t i = 0; i < end.parts.size() && i < begin.parts.size(); ++i) {
      result.parts.push_back(ServerStatistics::difference(end.parts[i], begin.parts[i]));
    }
  }
  return result;
}

}  // namespace septet::measure
