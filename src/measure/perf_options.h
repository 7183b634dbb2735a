// perf_analyzer's command line as a plan: which levels, by which rules, against what.
//
// Pure: words in, a checked plan or a usage error out. Options keep perf_analyzer's names, defaults
// and refused combinations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "measure/infer_input.h"
#include "measure/level_sweep.h"
#include "measure/measurement_rules.h"
#include "measure/message_compression.h"
#include "measure/perf_tls_options.h"
#include "measure/trace_request.h"

namespace septet::measure {

enum class CallMode { kSync, kAsync, kStreaming };

// The words as given; an option that was not given is empty.
struct PerfArguments {
  std::string model;
  std::string version;
  std::vector<std::string> urls;
  std::string protocol = "http";
  std::vector<std::string> headers;             // "NAME:VALUE"
  std::string grpc_compression = "none";        // none, gzip or deflate
  std::vector<std::string> request_parameters;  // "NAME:VALUE:TYPE"
  TlsWords tls;
  TraceRequest trace;
  std::string called_models;  // --bls-composing-models: NAME[:VERSION],...
  bool collect_metrics = false;
  std::optional<std::string> metrics_url;
  std::optional<std::uint64_t> metrics_interval_ms;

  std::optional<std::string> concurrency_range;   // START[:END[:STEP]]
  std::optional<std::string> request_rate_range;  // START[:END[:STEP]]
  std::optional<std::string> request_intervals;   // a file
  std::optional<std::string> request_trace;       // a file
  double trace_speed = 1;
  std::string request_distribution = "constant";
  std::optional<std::uint64_t> old_concurrency;      // -t
  std::optional<std::uint64_t> old_max_concurrency;  // -c, with -d
  bool dynamic_concurrency = false;                  // -d
  bool binary_search = false;
  std::uint64_t latency_threshold_ms = 0;
  bool async = false;
  bool sync = false;
  bool streaming = false;

  std::optional<std::uint64_t> measurement_interval_ms;
  std::string measurement_mode = "time_windows";
  std::optional<std::uint64_t> measurement_request_count;
  std::uint64_t request_count = 0;          // so many requests, one window; 0 = by the rules
  std::uint64_t warm_up_request_count = 0;  // before the first window of a level
  std::optional<double> stability_percentage;
  std::optional<int> max_trials;
  int percentile = -1;
  bool adaptive = false;     // short windows until confident, whatever other words say
  bool no_adaptive = false;  // neither said: adaptive unless a word about windows was said

  int batch_size = 1;
  std::vector<std::string> input_data;  // random, zero, a directory, or JSON files
  bool zero_input = false;              // -z
  std::string data_directory;           // an old word
  std::vector<std::string> shapes;      // NAME:1,2,3
  std::uint64_t string_length = 128;
  std::string string_data;
  std::string shared_memory = "none";           // none, system or cuda
  std::string input_tensor_format = "binary";   // binary or json
  std::string output_tensor_format = "binary";  // binary or json

  std::uint64_t live_sequences = 4;
  std::uint64_t sequence_length = 20;
  double sequence_length_variation = 20;         // percent
  std::optional<std::string> sequence_id_range;  // START[:END]
};

// The server's Prometheus page.
struct MetricsPlan {
  std::string url;
  Duration interval{};
};

struct PerfPlan {
  LoadMode mode = LoadMode::kConcurrency;
  double begin = 1;
  double end = 1;  // 0 = until the latency limit is exceeded
  double step = 1;
  bool start_only = false;  // the range named no END
  bool binary_search = false;
  CallMode call_mode = CallMode::kSync;
  bool call_mode_said = false;
  bool grpc = false;
  MessageCompression grpc_compression = MessageCompression::kNone;
  RequestDistribution distribution = RequestDistribution::kConstant;
  std::optional<std::string> intervals_file;
  std::optional<std::string> trace_file;
  double trace_speed = 1;
  MeasurementRules rules;
  InputOptions input;
  std::vector<std::string> input_files;  // directories or JSON files; empty = made up
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<TlsOptions> tls;       // nothing = plain connections
  std::optional<MetricsPlan> metrics;  // nothing = not collected
  std::vector<ModelPart> parts;  // of the model, once it is known; before: those that were named
  bool shared_memory = false;
  std::uint64_t first_sequence_id = 1;
  std::uint64_t last_sequence_id = UINT64_MAX;

  // The gaps of an open loop with given gaps become the plan's one level. A trace is replayed once,
  // in ten windows that all count.
  void use_intervals(const std::vector<Duration>& gaps);
  // An ensemble's parts. Sequence models are called asynchronously unless --sync was said.
  void note_model(const ModelDescription& model);
  LevelSweep sweep() const;
};

// The plan, or kUsage with what is wrong and how to write it.
Result<PerfPlan> plan_of(const PerfArguments& arguments);

// Gaps between requests from the text of an intervals file: microseconds, one a line.
Result<std::vector<Duration>> parse_intervals(std::string_view text);

}  // namespace septet::measure
