#include "measure/perf_csv.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>
#include <type_traits>

namespace septet::measure {

namespace {

std::uint64_t whole(double us) { return us <= 0 ? 0 : static_cast<std::uint64_t>(us); }

std::set<int> percentiles(const PerfCsvFormat& format) {
  std::set<int> result = {50, 90, 95, 99};
  if (format.percentile) {
    result.insert(*format.percentile);
  }
  return result;
}

// One cell: "UUID:value;" for each GPU.
template <typename Value>
std::string by_gpu(const std::map<std::string, Value>& values) {
  std::string cell = ",";
  for (const auto& [gpu, value] : values) {
    if constexpr (std::is_floating_point_v<Value>) {
      cell += fmt::format("{}:{:g};", gpu, value);
    } else {
      cell += fmt::format("{}:{};", gpu, value);
    }
  }
  return cell;
}

std::string gpu_cells(const GpuFigures& gpus) {
  return by_gpu(gpus.utilization()) + by_gpu(gpus.power_watts()) +
         by_gpu(gpus.most_memory_bytes()) + by_gpu(gpus.total_memory_bytes());
}

constexpr const char* kServerColumns =
    ",Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,"
    "Server Compute Output";
constexpr const char* kCacheColumns = ",Server Cache Hit,Server Cache Miss";

const char* level_column(LoadMode mode) {
  return mode == LoadMode::kConcurrency ? "Concurrency" : "Request Rate";
}

std::string server_cells(const ServerStatistics& server, std::uint64_t outside_us, bool has_cache) {
  std::string cells = fmt::format(",{},{},{},{},{}", outside_us, server.queue.mean_us(),
                                  server.compute_input.mean_us(), server.compute_infer.mean_us(),
                                  server.compute_output.mean_us());
  if (has_cache) {
    cells += fmt::format(",{},{}", server.cache_hit.mean_us(), server.cache_miss.mean_us());
  }
  return cells;
}

std::string level_text(const Level& level) {
  return level.mode == LoadMode::kConcurrency
             ? fmt::format("{}", static_cast<std::uint64_t>(level.value))
             : fmt::format("{:g}", level.value);
}

}  // namespace

std::uint64_t network_us(const LevelResult& result) {
  const ServerStatistics& server = result.server;
  const std::uint64_t known = whole(result.mean_send_us) + whole(result.mean_receive_us) +
                              server.queue.mean_us() + server.compute_input.mean_us() +
                              server.compute_infer.mean_us() + server.compute_output.mean_us() +
                              server.cache_hit.mean_us() + server.cache_miss.mean_us();
  const std::uint64_t mean = whole(result.mean_us());
  return mean > known ? mean - known : 0;
}

std::string perf_csv_header(const PerfCsvFormat& format) {
  std::string line = level_column(format.mode);
  line += ",Inferences/Second,Client Send";
  if (format.server_columns) {
    line += kServerColumns;
    line += format.cache_columns ? kCacheColumns : "";
  }
  line += ",Client Recv";
  for (const int percentile : percentiles(format)) {
    line += fmt::format(",p{} latency", percentile);
  }
  if (format.verbose) {
    line += format.percentile ? "" : ",Avg latency";
    line += ",request/response,response wait";
    if (format.gpu_columns) {
      line += ",Avg GPU Utilization,Avg GPU Power Usage,Max GPU Memory Usage,Total GPU Memory";
    }
  }
  return line + "\n";
}

std::string perf_csv_row(const PerfCsvFormat& format, const LevelResult& result) {
  const std::uint64_t send = whole(result.mean_send_us);
  const std::uint64_t receive = whole(result.mean_receive_us);
  std::string line = fmt::format("{},{:g},{}", level_text(result.level), result.throughput, send);
  const auto out = std::back_inserter(line);
  if (format.server_columns) {
    line += server_cells(result.server, network_us(result), format.cache_columns);
  }
  fmt::format_to(out, ",{}", receive);
  for (const int percentile : percentiles(format)) {
    fmt::format_to(out, ",{}", whole(result.percentile_us(percentile)));
  }
  if (format.verbose) {
    const std::uint64_t mean = whole(result.mean_us());
    if (!format.percentile) {
      fmt::format_to(out, ",{}", mean);
    }
    const std::uint64_t wait = mean > send + receive ? mean - send - receive : 0;
    fmt::format_to(out, ",{},{}", send + receive, wait);
    if (format.gpu_columns) {
      line += gpu_cells(result.gpus.value_or(GpuFigures()));
    }
  }
  return line + "\n";
}

std::string perf_part_csv_header(const PerfCsvFormat& format, bool has_cache) {
  return fmt::format("{},Inferences/Second,Client Send{}{},Client Recv\n",
                     level_column(format.mode), kServerColumns, has_cache ? kCacheColumns : "");
}

std::string perf_part_csv_row(const LevelResult& result, std::size_t index, bool has_cache) {
  const ServerStatistics part =
      index < result.parts.size() ? result.parts[index] : ServerStatistics();
  const auto whole_model = static_cast<double>(result.server.success.count);
  const double throughput =
      whole_model > 0 ? static_cast<double>(part.success.count) / whole_model * result.throughput
                      : 0;
  return fmt::format("{},{:g},0{},0\n", level_text(result.level), throughput,
                     server_cells(part, part.overhead_ns() / 1000, has_cache));
}

std::string perf_part_csv_file(const std::string& csv_file, const ModelPart& part) {
  const std::size_t name = csv_file.rfind('/') + 1;  // 0 without a folder
  return fmt::format("{}{}_v{}.{}", csv_file.substr(0, name), part.name, part.version,
                     csv_file.substr(name));
}

}  // namespace septet::measure
