#include "measure/perf_console.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace septet::measure {

namespace {

std::uint64_t whole(double us) { return us <= 0 ? 0 : static_cast<std::uint64_t>(us); }

std::string judged_by(const PerfPlan& plan) {
  return plan.rules.percentile ? fmt::format("p{}", *plan.rules.percentile) : "average";
}

std::string level_value(const Level& level) {
  return level.mode == LoadMode::kConcurrency
             ? fmt::format("{}", static_cast<std::uint64_t>(level.value))
             : fmt::format("{:g}", level.value);
}

std::string load_lines(const PerfPlan& plan) {
  std::string text;
  if (plan.mode != LoadMode::kIntervals && !plan.start_only && plan.end != 1) {
    text += fmt::format("  Latency limit: {} msec\n", plan.rules.latency_limit / milliseconds(1));
    // A range that ends at 0 has no limit of its own.
    const double limit = std::max(plan.begin, plan.end);
    text += plan.mode == LoadMode::kConcurrency
                ? fmt::format("  Concurrency limit: {:.0f} concurrent requests\n", limit)
                : fmt::format("  Request Rate limit: {:g} requests per seconds\n", limit);
  }
  if (plan.mode == LoadMode::kRequestRate) {
    text += plan.distribution == RequestDistribution::kPoisson
                ? "  Using poisson distribution on request generation\n"
                : "  Using uniform distribution on request generation\n";
  }
  return text;
}

std::string client_lines(const PerfPlan& plan, const LevelResult& result) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  Client: \n    Request count: {}\n", result.completed);
  if (result.sequences > 0) {
    fmt::format_to(out, "    Sequence count: {} ({:g} seq/sec)\n", result.sequences,
                   static_cast<double>(result.sequences) / to_seconds(result.measured));
  }
  if (result.delayed > 0) {
    fmt::format_to(out, "    Delayed Request Count: {}\n", result.delayed);
  }
  fmt::format_to(out, "    Throughput: {:g} infer/sec\n", result.throughput);
  if (!plan.rules.percentile) {
    fmt::format_to(out, "    Avg latency: {} usec (standard deviation {} usec)\n",
                   whole(result.mean_us()), whole(result.standard_deviation_us()));
  }
  std::set<int> percentiles = {50, 90, 95, 99};
  if (plan.rules.percentile) {
    percentiles.insert(*plan.rules.percentile);
  }
  for (const int percentile : percentiles) {
    fmt::format_to(out, "    p{} latency: {} usec\n", percentile,
                   whole(result.percentile_us(percentile)));
  }
  const std::uint64_t mean = whole(result.sent_latency.mean_ns() / 1e3);
  const std::uint64_t moving = whole(result.mean_send_us) + whole(result.mean_receive_us);
  const std::uint64_t wait = mean > moving ? mean - moving : 0;
  if (plan.grpc) {
    fmt::format_to(out,
                   "    Avg gRPC time: {} usec ((un)marshal request/response {} usec + response "
                   "wait {} usec)\n",
                   mean, moving, wait);
  } else {
    fmt::format_to(out, "    Avg HTTP time: {} usec (send/recv {} usec + response wait {} usec)\n",
                   mean, moving, wait);
  }
  return text;
}

// What the server counted of one model; an ensemble's computation is shown by its parts.
std::string statistics_lines(const ServerStatistics& server, std::string_view indent,
                             bool has_cache, bool has_parts) {
  if (server.success.count == 0 && !has_parts) {
    return fmt::format("{}Request count: 0\n", indent);
  }
  std::string text = fmt::format(
      "{0}Inference count: {1}\n{0}Execution count: {2}\n{0}Successful request count: {3}\n",
      indent, server.inference_count, server.execution_count, server.success.count);
  const auto out = std::back_inserter(text);
  if (has_cache) {
    fmt::format_to(out, "{}Cache hit count: {}\n", indent, server.cache_hit.count);
  }
  fmt::format_to(out, "{}Avg request latency: {} usec (overhead {} usec + queue {} usec + compute",
                 indent, server.success.mean_us(), server.overhead_ns() / 1000,
                 server.queue.mean_us());
  if (has_parts) {
    const std::uint64_t compute_ns = server.compute_input.mean_ns() +
                                     server.compute_infer.mean_ns() +
                                     server.compute_output.mean_ns();
    return text + fmt::format(" {} usec)\n", compute_ns / 1000);
  }
  fmt::format_to(out, " input {} usec + compute infer {} usec + compute output {} usec",
                 server.compute_input.mean_us(), server.compute_infer.mean_us(),
                 server.compute_output.mean_us());
  if (has_cache) {
    fmt::format_to(out, " + cache hit {} usec + cache miss {} usec", server.cache_hit.mean_us(),
                   server.cache_miss.mean_us());
  }
  return text + ")\n";
}

std::string server_lines(const LevelResult& result, const std::vector<ModelPart>& parts) {
  std::string text = "  Server: \n" + statistics_lines(result.server, "    ",
                                                       result.has_response_cache, !parts.empty());
  text += parts.empty() ? "" : "\n  Composing models: \n";
  for (std::size_t i = 0; i < parts.size() && i < result.parts.size(); ++i) {
    text +=
        fmt::format("{}  {}, version: {}\n", i == 0 ? "" : "\n", parts[i].name, parts[i].version);
    text += statistics_lines(result.parts[i], "      ", parts[i].has_response_cache, false);
  }
  return text;
}

// Four blocks, a line for each GPU.
std::string gpu_lines(const GpuFigures& gpus) {
  constexpr std::size_t kMostShown = 16;
  std::string text = "  Server Prometheus Metrics: \n";
  if (gpus.utilization().size() > kMostShown) {
    return text +
           "    Too many GPUs on system to print out individual Prometheus metrics, use the CSV "
           "output feature to see metrics.\n";
  }
  const auto block = [&](const char* title, const auto& values, double factor, const char* unit) {
    text += fmt::format("    {}:\n", title);
    for (const auto& [gpu, value] : values) {
      text += fmt::format("      {} : {:g}{}\n", gpu, static_cast<double>(value) * factor, unit);
    }
  };
  const auto bytes = [&](const char* title, const std::map<std::string, std::uint64_t>& values) {
    text += fmt::format("    {}:\n", title);
    for (const auto& [gpu, value] : values) {
      text += fmt::format("      {} : {} bytes\n", gpu, value);
    }
  };
  block("Avg GPU Utilization", gpus.utilization(), 100, "%");
  block("Avg GPU Power Usage", gpus.power_watts(), 1, " watts");
  bytes("Max GPU Memory Usage", gpus.most_memory_bytes());
  bytes("Total GPU Memory", gpus.total_memory_bytes());
  return text;
}

// Lines for what perf_analyzer would have thrown away.
std::string warning_lines(const PerfPlan& plan, const LevelResult& result) {
  std::string text;
  if (result.failures.total() > 0) {
    text += fmt::format("  Failed requests: {} ({}); the latest: {}\n", result.failures.total(),
                        result.failures.text(), result.last_failure);
  }
  if (result.interrupted) {
    text += "  Interrupted: the figures are those of the time measured so far\n";
  } else if (!result.stable && !result.over_limit) {
    text += fmt::format(
        "  Not stable within {} measurement windows: kept, but read with care; a longer "
        "--measurement-interval may help\n",
        plan.rules.max_windows);
  }
  return text;
}

}  // namespace

std::string perf_settings_text(const PerfPlan& plan) {
  const bool adaptive = plan.rules.confidence_percent.has_value();
  std::string text = fmt::format(
      "*** Measurement Settings ***\n  Batch size: {}\n  Service Kind: Triton\n"
      "  Using \"{}\" mode for stabilization\n",
      plan.input.batch_size,
      adaptive                         ? "adaptive_windows"
      : plan.rules.requests_per_window ? "count_windows"
                                       : "time_windows");
  text += plan.rules.requests_per_window
              ? fmt::format("  Minimum number of samples in each window: {}\n",
                            *plan.rules.requests_per_window)
              : fmt::format("  Measurement window: {} msec\n", plan.rules.window / milliseconds(1));
  if (adaptive) {
    text += fmt::format("  Until 95% confidence is within {:g}% (-p MS for fixed windows)\n",
                        *plan.rules.confidence_percent);
  }
  text += load_lines(plan);
  text += fmt::format("  Using {} calls for inference\n",
                      plan.call_mode == CallMode::kSync ? "synchronous" : "asynchronous");
  return text + fmt::format("  Stabilizing using {} latency\n\n", judged_by(plan));
}

std::string perf_level_text(const PerfPlan& plan, const LevelResult& result) {
  const std::string level = level_value(result.level);
  std::string text = result.level.mode == LoadMode::kConcurrency
                         ? fmt::format("Request concurrency: {}\n", level)
                         : fmt::format("Request Rate: {} inference requests per seconds\n", level);
  text += client_lines(plan, result);
  if (result.has_server_statistics) {
    text += server_lines(result, plan.parts);
  }
  if (result.gpus) {
    text += gpu_lines(*result.gpus);
  }
  return text + warning_lines(plan, result) + "\n";
}

std::string perf_window_text(const PerfPlan& plan, std::size_t number, const WindowResult& window) {
  const std::string latency =
      plan.rules.percentile
          ? fmt::format("p{} latency: {} usec", *plan.rules.percentile,
                        whole(window.judged_latency_us))
          : fmt::format("Avg latency: {} usec (std {} usec)", whole(window.mean_latency_us),
                        whole(window.deviation_us));
  return fmt::format("  Pass [{}] throughput: {:g} infer/sec. {}. \n", number, window.throughput,
                     latency);
}

std::string perf_summary_text(const PerfPlan& plan, const std::vector<LevelResult>& results) {
  std::string text = fmt::format(
      "Inferences/Second vs. Client {} Batch Latency\n",
      plan.rules.percentile ? fmt::format("p{}", *plan.rules.percentile) : std::string("Average"));
  for (const LevelResult& result : results) {
    text += fmt::format(
        "{}: {}, throughput: {:g} infer/sec, latency {} usec",
        result.level.mode == LoadMode::kConcurrency ? "Concurrency" : "Request Rate",
        level_value(result.level), result.throughput, whole(result.judged_latency_us()));
    if (result.failures.total() > 0) {
      text += fmt::format(", {} failed", result.failures.total());
    }
    if (result.interrupted) {
      text += ", interrupted";
    } else if (!result.stable && !result.over_limit) {
      text += ", not stable";
    }
    text += "\n";
  }
  return text;
}

}  // namespace septet::measure
