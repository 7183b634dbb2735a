#include "measure/foreign_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "measure/csv_table.h"

namespace septet::measure {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kRateColumn = "Request Rate";

Error broken(const std::string& source, std::size_t line, const std::string& why) {
  return make_error(ErrorKind::kFailed, fmt::format("{}:{}: {}", source, line, why),
                    "results.csv, perf_analyzer's CSV and wrk's printout are understood");
}

ResultRow foreign_row(const std::string& run) {
  ResultRow row;
  row.context.run = run;
  row.context.replicas = 0;
  row.p50_us = row.p90_us = row.p95_us = row.p99_us = kUnknown;
  return row;
}

// --- perf_analyzer ---

struct PerfColumns {
  std::size_t level = 0;
  std::size_t throughput = 0;
  std::optional<std::size_t> p50, p90, p95, p99;
};

Result<PerfColumns> perf_columns(const CsvTable& table, const std::string& source) {
  const auto throughput = table.column("Inferences/Second");
  if (!throughput) {
    return broken(source, 1, "there is no column 'Inferences/Second'");
  }
  return PerfColumns{.level = 0,
                     .throughput = *throughput,
                     .p50 = table.column("p50 latency"),
                     .p90 = table.column("p90 latency"),
                     .p95 = table.column("p95 latency"),
                     .p99 = table.column("p99 latency")};
}

double number_at(const CsvTable::Row& row, const std::optional<std::size_t>& column) {
  if (!column || *column >= row.cells.size()) {
    return kUnknown;
  }
  return parse_double(row.cells[*column]).value_or(kUnknown);
}

Result<std::vector<ResultRow>> parse_perf(std::string_view text, const std::string& source,
                                          const std::string& run) {
  const CsvTable table = parse_csv(text);
  const Result<PerfColumns> columns = perf_columns(table, source);
  if (!columns) {
    return columns.error();
  }
  std::vector<ResultRow> rows;
  for (const CsvTable::Row& cells : table.rows) {
    const double level = number_at(cells, columns->level);
    ResultRow row = foreign_row(run);
    row.throughput = number_at(cells, columns->throughput);
    if (!(level > 0) || level > 1e9 || !(row.throughput >= 0)) {
      return broken(source, cells.line, "level and throughput must be numbers");
    }
    row.load =
        table.header.front() == kRateColumn ? LoadMode::kRequestRate : LoadMode::kConcurrency;
    row.concurrency = static_cast<int>(std::lround(level));
    row.p50_us = number_at(cells, columns->p50);
    row.p90_us = number_at(cells, columns->p90);
    row.p95_us = number_at(cells, columns->p95);
    row.p99_us = number_at(cells, columns->p99);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ResultRow& a, const ResultRow& b) {
    return a.concurrency < b.concurrency;
  });
  return rows;
}

// --- wrk ---

// "635.91us", "5.80ms", "1.02s", "1.50m", "0.02h" in microseconds.
double wrk_time_us(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}};
  for (const auto& [unit, factor] : kUnits) {
    if (text.ends_with(unit)) {
      const auto value = parse_double(text.substr(0, text.size() - unit.size()));
      if (value) {
        return *value * factor;
      }
    }
  }
  return kUnknown;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!trim(word).empty()) {
      words.push_back(trim(word));
    }
  }
  return words;
}

// The whole numbers among the words: "Socket errors: connect 0, read 3, write 0, timeout 1".
std::uint64_t sum_of_numbers(const std::vector<std::string_view>& words) {
  std::uint64_t sum = 0;
  for (std::string_view word : words) {
    if (word.ends_with(',')) {
      word.remove_suffix(1);
    }
    sum += parse_uint(word).value_or(0);
  }
  return sum;
}

// What one line of a printout says of the run.
void take_wrk_line(const std::vector<std::string_view>& words, ResultRow& row) {
  if (words.size() >= 5 && words[1] == "threads" && words[4] == "connections") {
    row.concurrency =
        static_cast<int>(std::min<std::uint64_t>(parse_uint(words[3]).value_or(1), 1'000'000));
  } else if (words.size() == 2 && words[0] == "50%") {
    row.p50_us = wrk_time_us(words[1]);
  } else if (words.size() == 2 && words[0] == "90%") {
    row.p90_us = wrk_time_us(words[1]);
  } else if (words.size() == 2 && words[0] == "99%") {
    row.p99_us = wrk_time_us(words[1]);
  } else if (words[0] == "Socket" || words[0] == "Non-2xx") {
    row.errors += sum_of_numbers(words);
  } else if (words[0] == "Requests/sec:" && words.size() == 2) {
    row.throughput = parse_double(words[1]).value_or(kUnknown);
  }
}

Result<std::vector<ResultRow>> parse_wrk(std::string_view text, const std::string& source,
                                         const std::string& run) {
  std::vector<ResultRow> rows;
  std::size_t number = 0;
  std::size_t begun_at = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) {
      continue;
    }
    if (words[0] == "Running") {
      if (!rows.empty() && !(rows.back().throughput >= 0)) {
        break;
      }
      rows.push_back(foreign_row(run));
      rows.back().throughput = kUnknown;
      begun_at = number;
    } else if (!rows.empty()) {
      take_wrk_line(words, rows.back());
    }
  }
  if (rows.empty() || !(rows.back().throughput >= 0)) {
    return broken(source, begun_at, "this printout of wrk has no 'Requests/sec:' line");
  }
  return rows;
}

}  // namespace

ResultFormat detect_format(std::string_view text) {
  const std::string_view line = trim(text.substr(0, text.find('\n')));
  if (line.starts_with("Running ")) {
    return ResultFormat::kWrk;
  }
  const CsvTable table = parse_csv(line);
  if (table.column("technique") && table.column("throughput")) {
    return ResultFormat::kSeptet;
  }
  const bool perf = table.column("Inferences/Second") && !table.header.empty() &&
                    (table.header[0] == "Concurrency" || table.header[0] == kRateColumn);
  return perf ? ResultFormat::kPerfAnalyzer : ResultFormat::kUnknown;
}

Result<std::vector<ResultRow>> parse_any_results(std::string_view text, const std::string& source,
                                                 const std::string& run) {
  switch (detect_format(text)) {
    case ResultFormat::kSeptet: {
      Result<std::vector<ResultRow>> rows = parse_results(text, source);
      if (rows) {
        for (ResultRow& row : *rows) {
          row.context.run = run;
        }
      }
      return rows;
    }
    case ResultFormat::kPerfAnalyzer:
      return parse_perf(text, source, run);
    case ResultFormat::kWrk:
      return parse_wrk(text, source, run);
    case ResultFormat::kUnknown:
      break;
  }
  return broken(source, 1, "these are no results that are known");
}

}  // namespace septet::measure
