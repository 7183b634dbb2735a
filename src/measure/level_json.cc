#include "measure/level_json.h"

#include "inference/json_writer.h"

namespace septet::measure {

namespace {

using inference::JsonWriter;

const char* mode_name(LoadMode mode) {
  switch (mode) {
    case LoadMode::kConcurrency:
      return "concurrency";
    case LoadMode::kRequestRate:
      return "request_rate";
    case LoadMode::kIntervals:
      return "intervals";
  }
  return "";
}

void write_interval(JsonWriter& json, const char* name,
                    const std::optional<ConfidenceInterval>& interval) {
  if (interval) {
    json.key(name).begin_object();
    json.key("mean").value(interval->mean).key("half_width").value(interval->half_width);
    json.end_object();
  }
}

// Buckets that hold something, as [smallest value in ns, count].
void write_histogram(JsonWriter& json, const char* name, const Histogram& histogram) {
  json.key(name).begin_object();
  json.key("count").value(histogram.count());
  json.key("mean_us").value(histogram.mean_ns() / 1e3);
  json.key("standard_deviation_us").value(histogram.standard_deviation_ns() / 1e3);
  json.key("min_us").value(static_cast<double>(histogram.min_ns()) / 1e3);
  json.key("max_us").value(static_cast<double>(histogram.max_ns()) / 1e3);
  for (const double percent : {50.0, 90.0, 95.0, 99.0, 99.9}) {
    json.key(percent == 99.9 ? "p99.9_us" : "p" + std::to_string(static_cast<int>(percent)) + "_us")
        .value(histogram.percentile_ns(percent) / 1e3);
  }
  json.key("buckets_ns").begin_array();
  for (std::size_t i = 0; i < histogram.buckets().size(); ++i) {
    if (histogram.buckets()[i] > 0) {
      json.begin_array()
          .value(Histogram::bucket_begin(i))
          .value(histogram.buckets()[i])
          .end_array();
    }
  }
  json.end_array().end_object();
}

void write_failures(JsonWriter& json, const FailureCounts& failures) {
  json.key("failures").begin_object();
  json.key("total").value(failures.total());
  for (std::size_t i = 0; i < kFailureKinds; ++i) {
    const auto kind = static_cast<FailureKind>(i);
    json.key(to_string(kind)).value(failures.of(kind));
  }
  json.end_object();
}

void write_server(JsonWriter& json, const ServerStatistics& server) {
  const auto duration = [&](const char* name, const ServerDuration& value) {
    json.key(name).begin_object().key("count").value(value.count).key("ns").value(value.ns);
    json.end_object();
  };
  json.key("server").begin_object();
  json.key("inference_count").value(server.inference_count);
  json.key("execution_count").value(server.execution_count);
  duration("success", server.success);
  duration("queue", server.queue);
  duration("compute_input", server.compute_input);
  duration("compute_infer", server.compute_infer);
  duration("compute_output", server.compute_output);
  duration("cache_hit", server.cache_hit);
  duration("cache_miss", server.cache_miss);
  json.end_object();
}

void write_gpus(JsonWriter& json, const GpuFigures& gpus) {
  json.key("gpus").begin_array();
  const auto used = gpus.utilization();
  const auto power = gpus.power_watts();
  const auto& most = gpus.most_memory_bytes();
  const auto& total = gpus.total_memory_bytes();
  const auto write = [&](const char* name, const auto& values, const std::string& gpu) {
    if (const auto found = values.find(gpu); found != values.end()) {
      json.key(name).value(found->second);
    }
  };
  for (const std::string& gpu : gpus.names()) {
    json.begin_object().key("gpu_uuid").value(gpu);
    write("utilization_mean", used, gpu);
    write("power_watts_mean", power, gpu);
    write("memory_used_bytes_max", most, gpu);
    write("memory_total_bytes", total, gpu);
    json.end_object();
  }
  json.end_array();
}

void write_windows(JsonWriter& json, const std::vector<WindowResult>& windows) {
  json.key("windows").begin_array();
  for (const WindowResult& window : windows) {
    json.begin_object();
    json.key("start_s").value(to_seconds(window.start));
    json.key("duration_s").value(to_seconds(window.duration));
    json.key("completed").value(window.completed);
    json.key("failed").value(window.failures.total());
    json.key("delayed").value(window.delayed);
    json.key("throughput").value(window.throughput);
    json.key("mean_latency_us").value(window.mean_latency_us);
    json.key("judged_latency_us").value(window.judged_latency_us);
    json.key("merged").value(window.merged);
    json.end_object();
  }
  json.end_array();
}

void write_checks(JsonWriter& json, const LevelResult& result) {
  json.key("checks").begin_object();
  json.key("in_flight_mean").value(result.in_flight_mean);
  json.key("generator_busy").value(result.generator_busy);
  json.key("generator_bound").value(result.generator_bound);
  json.key("send_lag_p99_us").value(result.send_lag_p99_us);
  json.end_object();
}

}  // namespace

std::string level_json(const LevelResult& result, const MeasurementContext& context) {
  JsonWriter json;
  json.begin_object();
  json.key("schema").value("septet.perf/1");
  json.key("septet").value(context.version);
  json.key("unix_time_ns").value(context.unix_time_ns);
  json.key("model").value(context.model);
  json.key("url").value(context.url);
  json.key("protocol").value(context.protocol);
  json.key("seed").value(context.seed);
  json.key("mode").value(mode_name(result.level.mode));
  json.key("loop").value(result.level.mode == LoadMode::kConcurrency ? "closed" : "open");
  json.key("level").value(result.level.value);
  json.key("batch_size").value(result.batch_size);
  json.key("judged_by")
      .value(result.percentile ? "p" + std::to_string(*result.percentile) : std::string("mean"));
  json.key("stable").value(result.stable);
  json.key("over_limit").value(result.over_limit);
  json.key("interrupted").value(result.interrupted);
  json.key("measured_s").value(to_seconds(result.measured));
  json.key("completed").value(result.completed);
  json.key("throughput").value(result.throughput);
  write_interval(json, "throughput_interval_95", result.throughput_interval);
  write_interval(json, "judged_latency_us_interval_95", result.latency_interval);
  write_failures(json, result.failures);
  if (!result.last_failure.empty()) {
    json.key("last_failure").value(result.last_failure);
  }
  json.key("delayed").value(result.delayed);
  json.key("sequences").value(result.sequences);
  json.key("mean_send_us").value(result.mean_send_us);
  json.key("mean_receive_us").value(result.mean_receive_us);
  write_checks(json, result);
  if (result.has_server_statistics) {
    write_server(json, result.server);
  }
  if (result.gpus) {
    write_gpus(json, *result.gpus);
  }
  write_windows(json, result.windows);
  write_histogram(json, "latency_from_due", result.latency);
  if (result.level.mode != LoadMode::kConcurrency) {
    write_histogram(json, "latency_from_sent", result.sent_latency);
  }
  json.end_object();
  return json.take() + "\n";
}

}  // namespace septet::measure
