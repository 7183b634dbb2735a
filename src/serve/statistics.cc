#include "serve/statistics.h"

#include <algorithm>

namespace septet::serve {

using inference::JsonWriter;

namespace {

void write_duration(JsonWriter& json, std::string_view key, const DurationCount& duration) {
  json.key(key).begin_object();
  json.key("count").value(duration.count).key("ns").value(duration.ns);
  json.end_object();
}

}  // namespace

void DurationCount::add(Duration duration, std::uint64_t times) {
  count += times;
  ns += static_cast<std::uint64_t>(std::max(duration, Duration::zero()).count());
}

DurationCount& DurationCount::operator+=(const DurationCount& other) {
  count += other.count;
  ns += other.ns;
  return *this;
}

void ModelStatistics::record_execution(std::uint64_t batch_size, const RequestTimes& times,
                                       std::uint64_t unix_ms) {
  last_inference_ms = std::max(last_inference_ms, unix_ms);
  execution_count += 1;
  inference_count += batch_size;
  BatchStatistics& batch = batches[batch_size];
  batch.compute_input.add(times.infer_start - times.compute_start);
  batch.compute_infer.add(times.infer_end - times.infer_start);
  batch.compute_output.add(times.output_end - times.infer_end);
  busy_ns += static_cast<std::uint64_t>((times.output_end - times.compute_start).count());
}

void ModelStatistics::record_success(const RequestTimes& times) {
  success.add(times.output_end - times.arrival);
  queue.add(times.compute_start - times.arrival);
  compute_input.add(times.infer_start - times.compute_start);
  compute_infer.add(times.infer_end - times.infer_start);
  compute_output.add(times.output_end - times.infer_end);
}

void ModelStatistics::record_failure(Duration total) { fail.add(total); }

void ModelStatistics::record_cache_hit(const RequestTimes& times, std::uint64_t unix_ms) {
  last_inference_ms = std::max(last_inference_ms, unix_ms);
  success.add(times.output_end - times.arrival);
  queue.add(times.compute_start - times.arrival);
  cache_hit.add(times.output_end - times.compute_start);
}

ModelStatistics& ModelStatistics::operator+=(const ModelStatistics& other) {
  last_inference_ms = std::max(last_inference_ms, other.last_inference_ms);
  inference_count += other.inference_count;
  execution_count += other.execution_count;
  success += other.success;
  fail += other.fail;
  queue += other.queue;
  compute_input += other.compute_input;
  compute_infer += other.compute_infer;
  compute_output += other.compute_output;
  cache_hit += other.cache_hit;
  cache_miss += other.cache_miss;
  for (const auto& [size, batch] : other.batches) {
    batches[size].compute_input += batch.compute_input;
    batches[size].compute_infer += batch.compute_infer;
    batches[size].compute_output += batch.compute_output;
  }
  rejected += other.rejected;
  cancelled += other.cancelled;
  busy_ns += other.busy_ns;
  pending += other.pending;
  return *this;
}

void write_statistics(JsonWriter& json, const std::string& model, const std::string& version,
                      const ModelStatistics& statistics) {
  json.begin_object();
  json.key("name").value(model).key("version").value(version);
  json.key("last_inference").value(statistics.last_inference_ms);
  json.key("inference_count").value(statistics.inference_count);
  json.key("execution_count").value(statistics.execution_count);
  json.key("inference_stats").begin_object();
  write_duration(json, "success", statistics.success);
  write_duration(json, "fail", statistics.fail);
  write_duration(json, "queue", statistics.queue);
  write_duration(json, "compute_input", statistics.compute_input);
  write_duration(json, "compute_infer", statistics.compute_infer);
  write_duration(json, "compute_output", statistics.compute_output);
  write_duration(json, "cache_hit", statistics.cache_hit);
  write_duration(json, "cache_miss", statistics.cache_miss);
  json.end_object();
  json.key("response_stats").begin_object().end_object();
  json.key("batch_stats").begin_array();
  for (const auto& [size, batch] : statistics.batches) {
    json.begin_object().key("batch_size").value(size);
    write_duration(json, "compute_input", batch.compute_input);
    write_duration(json, "compute_infer", batch.compute_infer);
    write_duration(json, "compute_output", batch.compute_output);
    json.end_object();
  }
  json.end_array();
  json.key("memory_usage").begin_array().end_array();
  json.end_object();
}

}  // namespace septet::serve
