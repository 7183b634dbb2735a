#include "measure/perf_options.h"

#include <fmt/format.h>

#include <numeric>

#include "base/text.h"
#include "measure/load_schedule.h"
#include "measure/perf_input_options.h"
#include "measure/perf_old_options.h"

namespace septet::measure {

namespace {

constexpr std::uint64_t kDefaultRequestCount = 50;
constexpr int kReplayWindows = 10;
constexpr Duration kLongestCount =
    seconds(600);  // a tenth of the time that --request-count may take

Error usage(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::kUsage, std::move(message), std::move(hint));
}

struct Range {
  double begin = 1;
  double end = 1;
  double step = 1;
  bool start_only = false;
};

// "START", "START:END" or "START:END:STEP".
Result<Range> parse_range(std::string_view option, const std::string& text, bool whole_numbers) {
  const std::vector<std::string_view> pieces = split(text, ':');
  const Error wrong = usage(fmt::format("{} '{}' is not a range", option, text),
                            fmt::format("write START:END:STEP with {} numbers, e.g. 1:8:1",
                                        whole_numbers ? "whole" : "positive"));
  if (pieces.size() > 3) {
    return wrong;
  }
  std::vector<double> numbers;
  for (const std::string_view piece : pieces) {
    const std::optional<double> number = parse_double(piece);
    if (!number || *number < 0 || (whole_numbers && !parse_uint(piece))) {
      return wrong;
    }
    numbers.push_back(*number);
  }
  Range range;
  range.begin = numbers[0];
  range.start_only = numbers.size() == 1;
  range.end = range.start_only ? range.begin : numbers[1];
  range.step = numbers.size() > 2 ? numbers[2] : 1;
  if (range.begin <= 0 || range.step <= 0) {
    return wrong;
  }
  return range;
}

Result<Ok> read_load(const PerfArguments& arguments, PerfPlan& plan) {
  const int ways = (arguments.concurrency_range ? 1 : 0) + (arguments.request_rate_range ? 1 : 0) +
                   (arguments.request_intervals ? 1 : 0) + (arguments.request_trace ? 1 : 0);
  if (ways > 1) {
    return usage(
        "only one of --concurrency-range, --request-rate-range, --request-intervals and "
        "--request-trace can be used");
  }
  if (arguments.request_intervals || arguments.request_trace) {
    if (arguments.trace_speed <= 0) {
      return usage("--trace-speed must be above 0");
    }
    plan.mode = LoadMode::kIntervals;
    plan.intervals_file = arguments.request_intervals;
    plan.trace_file = arguments.request_trace;
    plan.trace_speed = arguments.trace_speed;
    return Ok{};
  }
  const bool open = arguments.request_rate_range.has_value();
  plan.mode = open ? LoadMode::kRequestRate : LoadMode::kConcurrency;
  const Result<Range> range =
      open ? parse_range("--request-rate-range", *arguments.request_rate_range, false)
           : parse_range("--concurrency-range", arguments.concurrency_range.value_or("1"), true);
  if (!range.ok()) {
    return range.error();
  }
  plan.begin = range->begin;
  plan.end = range->end;
  plan.step = range->step;
  plan.start_only = range->start_only;
  return Ok{};
}

Result<Ok> read_search(const PerfArguments& arguments, PerfPlan& plan) {
  plan.binary_search = arguments.binary_search;
  plan.rules.latency_limit =
      milliseconds(static_cast<std::int64_t>(arguments.latency_threshold_ms));
  if (plan.end == 0 && arguments.latency_threshold_ms == 0) {
    return usage(
        "a range that ends at 0 grows until the latency threshold is exceeded, and none "
        "was given",
        "add --latency-threshold MS");
  }
  if (!arguments.binary_search) {
    return Ok{};
  }
  if (plan.mode == LoadMode::kIntervals) {
    return usage("--binary-search needs a range, not --request-intervals");
  }
  if (plan.end == 0 || plan.end < plan.begin) {
    return usage("--binary-search needs a range with START and END, START not above END");
  }
  if (arguments.latency_threshold_ms == 0) {
    return usage("--binary-search needs a latency to search for", "add --latency-threshold MS");
  }
  return Ok{};
}

Result<Ok> read_compression(const PerfArguments& arguments, PerfPlan& plan) {
  const std::string word = to_lower(arguments.grpc_compression);
  if (word == "none") {
    return Ok{};
  }
  if (word != "gzip" && word != "deflate") {
    return usage(fmt::format("--grpc-compression-algorithm '{}' is neither none, gzip nor deflate",
                             arguments.grpc_compression));
  }
  if (!plan.grpc) {
    return usage("--grpc-compression-algorithm needs the gRPC protocol", "add -i grpc");
  }
  plan.grpc_compression = word == "gzip" ? MessageCompression::kGzip : MessageCompression::kDeflate;
  return Ok{};
}

Result<Ok> read_calls(const PerfArguments& arguments, PerfPlan& plan) {
  const std::string protocol = to_lower(arguments.protocol);
  if (protocol != "http" && protocol != "grpc") {
    return usage(fmt::format("protocol '{}' is neither http nor grpc", arguments.protocol));
  }
  plan.grpc = protocol == "grpc";
  if (arguments.async && arguments.sync) {
    return usage("--async and --sync exclude each other");
  }
  if (arguments.streaming && !plan.grpc) {
    return usage("--streaming needs the gRPC protocol", "add -i grpc");
  }
  if (arguments.streaming && arguments.sync) {
    return usage("--streaming and --sync exclude each other");
  }
  plan.call_mode = arguments.streaming ? CallMode::kStreaming
                   : arguments.async   ? CallMode::kAsync
                                       : CallMode::kSync;
  plan.call_mode_said = arguments.streaming || arguments.async || arguments.sync;
  if (arguments.request_distribution == "poisson") {
    plan.distribution = RequestDistribution::kPoisson;
  } else if (arguments.request_distribution != "constant") {
    return usage(fmt::format("request distribution '{}' is neither constant nor poisson",
                             arguments.request_distribution));
  }
  SEPTET_TRY(read_compression(arguments, plan));
  Result<std::optional<TlsOptions>> tls = tls_options_of(arguments.tls, arguments.urls, plan.grpc);
  if (!tls.ok()) {
    return tls.error();
  }
  plan.tls = *std::move(tls);
  for (const std::string& header : arguments.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0 ||
        header.find_first_of("\r\n") != std::string::npos) {
      return usage(fmt::format("header '{}' is not NAME:VALUE", header));
    }
    plan.headers.emplace_back(header.substr(0, colon), trim(header.substr(colon + 1)));
  }
  return Ok{};
}

Result<Ok> read_metrics(const PerfArguments& arguments, PerfPlan& plan) {
  constexpr std::uint64_t kDefaultIntervalMs = 1000;
  if (!arguments.collect_metrics) {
    const bool interval = arguments.metrics_interval_ms.has_value();
    return interval || arguments.metrics_url
               ? Result<Ok>(usage(fmt::format("{} says nothing without --collect-metrics",
                                              interval ? "--metrics-interval" : "--metrics-url"),
                                  "add --collect-metrics"))
               : Ok{};
  }
  const std::uint64_t interval_ms = arguments.metrics_interval_ms.value_or(kDefaultIntervalMs);
  if (interval_ms == 0) {
    return usage("--metrics-interval must be above 0 ms");
  }
  MetricsPlan metrics;
  metrics.interval = milliseconds(static_cast<std::int64_t>(interval_ms));
  if (arguments.metrics_url) {
    metrics.url = *arguments.metrics_url;
  } else {
    // perf_analyzer's rule: the host that is measured, Triton's port.
    std::string host = arguments.urls.empty() ? "localhost" : without_https(arguments.urls.front());
    if (host.starts_with("unix:")) {
      return usage("--collect-metrics needs to know where the metrics are",
                   "add --metrics-url HOST:PORT/metrics");
    }
    host = host.starts_with("http://") ? host.substr(7) : host;
    const std::size_t from = host.starts_with('[') ? host.find(']') : 0;
    metrics.url = host.substr(0, host.find_first_of(":/", from)) + ":8002/metrics";
  }
  plan.metrics = std::move(metrics);
  return Ok{};
}

// Somebody who says nothing about windows gets the shortest measurement that is good enough;
// whoever gives perf_analyzer's words gets perf_analyzer's rule.
bool wants_adaptive(const PerfArguments& arguments) {
  const bool window_words = arguments.measurement_interval_ms || arguments.stability_percentage ||
                            arguments.max_trials || arguments.measurement_request_count ||
                            arguments.request_count > 0 ||
                            arguments.measurement_mode != "time_windows";
  return arguments.adaptive || (!window_words && !arguments.no_adaptive);
}

// A number of requests instead of a time.
void read_counts(const PerfArguments& arguments, PerfPlan& plan) {
  plan.rules.warm_up_requests = arguments.warm_up_request_count;
  if (arguments.request_count > 0) {
    plan.rules.requests_per_window = arguments.request_count;
    plan.rules.fixed_windows = 1;
    plan.rules.window = kLongestCount;
    plan.rules.confidence_percent.reset();
  }
}

Result<Ok> read_rules(const PerfArguments& arguments, PerfPlan& plan) {
  if (arguments.adaptive && arguments.no_adaptive) {
    return usage("--adaptive and --no-adaptive exclude each other");
  }
  if (wants_adaptive(arguments)) {
    const Duration limit = plan.rules.latency_limit;
    plan.rules = MeasurementRules::adaptive();
    plan.rules.latency_limit = limit;
    if (arguments.stability_percentage) {
      plan.rules.confidence_percent = arguments.stability_percentage;
    }
  }
  if (arguments.measurement_interval_ms) {
    if (*arguments.measurement_interval_ms == 0) {
      return usage("--measurement-interval must be above 0 ms");
    }
    plan.rules.window = milliseconds(static_cast<std::int64_t>(*arguments.measurement_interval_ms));
  }
  if (arguments.measurement_mode == "count_windows") {
    plan.rules.requests_per_window =
        arguments.measurement_request_count.value_or(kDefaultRequestCount);
    if (*plan.rules.requests_per_window == 0) {
      return usage("--measurement-request-count must be above 0");
    }
  } else if (arguments.measurement_mode != "time_windows") {
    return usage(fmt::format("measurement mode '{}' is neither time_windows nor count_windows",
                             arguments.measurement_mode));
  }
  read_counts(arguments, plan);
  if (arguments.percentile != -1) {
    if (arguments.percentile < 1 || arguments.percentile > 99) {
      return usage(fmt::format("--percentile {} is not within 1 to 99", arguments.percentile),
                   "leave it out to judge by the average latency");
    }
    plan.rules.percentile = arguments.percentile;
  }
  plan.rules.stability_percent =
      arguments.stability_percentage.value_or(plan.rules.stability_percent);
  plan.rules.max_windows = arguments.max_trials.value_or(plan.rules.max_windows);
  if (plan.rules.stability_percent <= 0 || plan.rules.max_windows < 1) {
    return usage("--stability-percentage and --max-trials must be above 0");
  }
  return Ok{};
}

}  // namespace

void PerfPlan::use_intervals(const std::vector<Duration>& gaps) {
  begin = shown_rate(gaps);
  end = begin;
  if (trace_file) {
    const Duration total = std::accumulate(gaps.begin(), gaps.end(), Duration::zero());
    begin = static_cast<double>(gaps.size()) / to_seconds(total);
    end = begin;
    rules.confidence_percent.reset();
    rules.requests_per_window.reset();
    rules.fixed_windows = kReplayWindows;
    rules.window = total / kReplayWindows;
    rules.window_stretch = 1;
  }
}

void PerfPlan::note_model(const ModelDescription& model) {
  parts = model.parts;
  if (model.is_sequence_model && !call_mode_said) {
    call_mode = CallMode::kAsync;
  }
}

LevelSweep PerfPlan::sweep() const {
  return binary_search ? LevelSweep::binary(mode, begin, end, step)
                       : LevelSweep::linear(mode, begin, end, step);
}

Result<PerfPlan> plan_of(const PerfArguments& words) {
  const Result<PerfArguments> todays = in_todays_words(words);
  if (!todays.ok()) {
    return todays.error();
  }
  const PerfArguments& arguments = *todays;
  PerfPlan plan;
  if (arguments.model.empty()) {
    return usage("no model was named", "add -m MODEL");
  }
  SEPTET_TRY(read_load(arguments, plan));
  SEPTET_TRY(read_search(arguments, plan));
  SEPTET_TRY(read_calls(arguments, plan));
  SEPTET_TRY(read_metrics(arguments, plan));
  SEPTET_TRY(check_trace(arguments.trace));
  SEPTET_TRY(read_called_models(arguments, plan));
  SEPTET_TRY(read_rules(arguments, plan));
  SEPTET_TRY(read_input(arguments, plan));
  SEPTET_TRY(read_sequences(arguments, plan));
  return plan;
}

Result<std::vector<Duration>> parse_intervals(std::string_view text) {
  std::vector<Duration> gaps;
  Duration total{};
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view word = trim(line);
    if (word.empty()) {
      continue;
    }
    const std::optional<std::uint64_t> us = parse_uint(word);
    constexpr std::uint64_t kLongestUs = 86'400'000'000;  // a day
    if (!us || *us > kLongestUs) {
      return usage(fmt::format("line {} of the intervals, '{}', is not a number of microseconds",
                               number, word));
    }
    gaps.push_back(microseconds(static_cast<std::int64_t>(*us)));
    total += gaps.back();
  }
  if (total == Duration::zero()) {
    return usage("the intervals hold no time", "give microseconds between requests, one a line");
  }
  return gaps;
}

}  // namespace septet::measure
