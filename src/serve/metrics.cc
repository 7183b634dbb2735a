#include "serve/metrics.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>

namespace septet::serve {

namespace {

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      text += '\\';
    }
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string labels_of(const ModelSnapshot& model) {
  std::string labels =
      fmt::format("model=\"{}\",version=\"{}\"", escaped(model.model), escaped(model.version));
  for (const auto& [name, value] : model.tags) {
    labels += fmt::format(",{}=\"{}\"", name, escaped(value));
  }
  return labels;
}

class Writer {
 public:
  explicit Writer(const std::vector<ModelSnapshot>& models) : models_(models) {}

  // One family with a line per model.
  template <typename Value>
  void per_model(std::string_view name, std::string_view type, std::string_view help,
                 Value&& value) {
    head(name, type, help);
    for (const ModelSnapshot& model : models_) {
      fmt::format_to(out(), "{}{{{}}} {}\n", name, labels_of(model), value(model));
    }
  }

  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(out(), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  template <typename Value>
  void single(std::string_view name, std::string_view type, std::string_view help, Value value) {
    head(name, type, help);
    fmt::format_to(out(), "{} {}\n", name, value);
  }

  std::back_insert_iterator<std::string> out() { return std::back_inserter(text_); }
  const std::vector<ModelSnapshot>& models() const { return models_; }
  std::string take() { return std::move(text_); }

 private:
  const std::vector<ModelSnapshot>& models_;
  std::string text_;
};

void write_requests(Writer& to) {
  to.per_model("nv_inference_request_success", "counter",
               "Number of successful inference requests, all batch sizes",
               [](const ModelSnapshot& m) { return m.statistics.success.count; });
  to.head("nv_inference_request_failure", "counter",
          "Number of failed inference requests, all batch sizes");
  for (const ModelSnapshot& model : to.models()) {
    const std::uint64_t rejected = model.statistics.rejected;
    const std::uint64_t cancelled = model.statistics.cancelled;
    for (const auto& [reason, count] :
         {std::pair("REJECTED", rejected), std::pair("CANCELED", cancelled),
          std::pair("BACKEND", model.statistics.fail.count - rejected - cancelled)}) {
      fmt::format_to(to.out(), "nv_inference_request_failure{{{},reason=\"{}\"}} {}\n",
                     labels_of(model), reason, count);
    }
  }
  to.per_model("nv_inference_count", "counter",
               "Number of inferences performed (does not include cached requests)",
               [](const ModelSnapshot& m) { return m.statistics.inference_count; });
  to.per_model("nv_inference_exec_count", "counter",
               "Number of model executions performed (does not include cached requests)",
               [](const ModelSnapshot& m) { return m.statistics.execution_count; });
  to.per_model("nv_inference_pending_request_count", "gauge",
               "Instantaneous number of pending requests awaiting execution per-model",
               [](const ModelSnapshot& m) { return m.statistics.pending; });
}

void write_durations(Writer& to) {
  using Member = DurationCount ModelStatistics::*;
  const auto duration = [&](std::string_view name, std::string_view help, Member member) {
    to.per_model(name, "counter", help,
                 [member](const ModelSnapshot& m) { return (m.statistics.*member).ns / 1000; });
  };
  duration("nv_inference_request_duration_us",
           "Cumulative inference request duration in microseconds (includes cached requests)",
           &ModelStatistics::success);
  duration("nv_inference_queue_duration_us",
           "Cumulative inference queuing duration in microseconds (includes cached requests)",
           &ModelStatistics::queue);
  duration("nv_inference_compute_input_duration_us",
           "Cumulative compute input duration in microseconds (does not include cached requests)",
           &ModelStatistics::compute_input);
  duration("nv_inference_compute_infer_duration_us",
           "Cumulative compute inference duration in microseconds (does not include cached "
           "requests)",
           &ModelStatistics::compute_infer);
  duration("nv_inference_compute_output_duration_us",
           "Cumulative inference compute output duration in microseconds (does not include cached "
           "requests)",
           &ModelStatistics::compute_output);
}

void write_cache(Writer& to) {
  to.per_model("nv_cache_num_hits_per_model", "counter", "Number of cache hits per model",
               [](const ModelSnapshot& m) { return m.statistics.cache_hit.count; });
  to.per_model("nv_cache_num_misses_per_model", "counter", "Number of cache misses per model",
               [](const ModelSnapshot& m) { return m.statistics.cache_miss.count; });
  to.per_model("nv_cache_hit_duration_per_model", "counter",
               "Total cache hit duration per model, in microseconds",
               [](const ModelSnapshot& m) { return m.statistics.cache_hit.ns / 1000; });
  to.per_model("nv_cache_miss_duration_per_model", "counter",
               "Total cache miss duration per model, in microseconds",
               [](const ModelSnapshot& m) { return m.statistics.cache_miss.ns / 1000; });
}

}  // namespace

std::string write_metrics(const std::vector<ModelSnapshot>& models, const HostSnapshot& host) {
  Writer to(models);
  write_requests(to);
  write_durations(to);
  write_cache(to);
  to.per_model("septet_serve_busy_seconds_total", "counter",
               "Time that the model's instances spent computing", [](const ModelSnapshot& m) {
                 return static_cast<double>(m.statistics.busy_ns) / 1e9;
               });
  to.per_model("septet_serve_instances", "gauge", "Instances of the model",
               [](const ModelSnapshot& m) { return m.instances; });
  to.single("septet_serve_connections", "gauge", "Open HTTP connections", host.connections);
  to.single("nv_cpu_memory_total_bytes", "gauge", "CPU total memory (RAM), in bytes",
            host.memory_total_bytes);
  to.single("nv_cpu_memory_used_bytes", "gauge", "CPU used memory (RAM), in bytes",
            host.memory_used_bytes);
  return to.take();
}

}  // namespace septet::serve
