#include "measure/results.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "measure/csv_table.h"

namespace septet::measure {
namespace {

// A value as its cell. The shortest text that reads back as the same number, but to a thousandth.
std::string write(double value) { return fmt::format("{}", std::round(value * 1000) / 1000); }
std::string write(const std::optional<double>& value) { return value ? write(*value) : ""; }
std::string write(const std::string& value) { return csv_cell(value); }
std::string write(std::uint64_t value) { return fmt::format("{}", value); }
std::string write(int value) { return fmt::format("{}", value); }
std::string write(bool value) { return value ? "true" : "false"; }

// A cell as its value; false: it is none.
bool read(std::string_view cell, double& to) {
  to = parse_double(cell).value_or(-1);
  return to >= 0;
}

bool read(std::string_view cell, std::optional<double>& to) {
  to = parse_double(cell);
  return cell.empty() || (to && *to >= 0);
}

bool read(std::string_view cell, std::string& to) {
  to = cell;
  return true;
}

bool read(std::string_view cell, std::uint64_t& to) {
  const std::optional<std::uint64_t> value = parse_uint(cell);
  to = value.value_or(0);
  return value.has_value();
}

bool read(std::string_view cell, int& to) {
  const std::optional<std::uint64_t> value = parse_uint(cell);
  to = static_cast<int>(value.value_or(0));
  return value && *value >= 1 && *value <= 1'000'000;
}

bool read(std::string_view cell, bool& to) {
  to = cell == "true";
  return to || cell == "false";
}

enum class Presence { kRequired, kOptional };

struct Column {
  std::string_view name;
  Presence presence;
  std::function<std::string(const ResultRow&)> write_cell;
  std::function<bool(std::string_view, ResultRow&)> read_cell;
};

// access: gives a reference to the column's member of a row, const or not.
template <typename Access>
Column column(std::string_view name, Presence presence, Access access) {
  return {name, presence, [access](const ResultRow& row) { return write(access(row)); },
          [access](std::string_view cell, ResultRow& row) { return read(cell, access(row)); }};
}

// The columns in the order of the file.
std::array<Column, 20> columns() {
  constexpr Presence kRequired = Presence::kRequired;
  constexpr Presence kOptional = Presence::kOptional;
  return {
      column(
          "technique", kRequired, [](auto& r) -> auto& { return r.context.technique; }),
      column(
          "replicas", kRequired, [](auto& r) -> auto& { return r.context.replicas; }),
      column(
          "concurrency", kRequired, [](auto& r) -> auto& { return r.concurrency; }),
      column(
          "throughput", kRequired, [](auto& r) -> auto& { return r.throughput; }),
      column(
          "p50", kRequired, [](auto& r) -> auto& { return r.p50_us; }),
      column(
          "p90", kRequired, [](auto& r) -> auto& { return r.p90_us; }),
      column(
          "p95", kRequired, [](auto& r) -> auto& { return r.p95_us; }),
      column(
          "p99", kRequired, [](auto& r) -> auto& { return r.p99_us; }),
      column(
          "errors", kRequired, [](auto& r) -> auto& { return r.errors; }),
      column(
          "seed", kRequired, [](auto& r) -> auto& { return r.context.seed; }),
      column(
          "machine", kRequired, [](auto& r) -> auto& { return r.context.machine; }),
      column(
          "commit", kRequired, [](auto& r) -> auto& { return r.context.commit; }),
      column(
          "model", kOptional, [](auto& r) -> auto& { return r.context.model; }),
      column(
          "gpu", kOptional, [](auto& r) -> auto& { return r.context.gpu; }),
      column(
          "simulated", kOptional, [](auto& r) -> auto& { return r.context.simulated; }),
      column(
          "stable", kOptional, [](auto& r) -> auto& { return r.stable; }),
      column(
          "throughput_half_width", kOptional,
          [](auto& r) -> auto& { return r.throughput_half_width; }),
      column(
          "p90_half_width", kOptional, [](auto& r) -> auto& { return r.p90_half_width_us; }),
      column(
          "profile", kOptional, [](auto& r) -> auto& { return r.context.profile; }),
      column(
          "limited", kOptional, [](auto& r) -> auto& { return r.context.limited; }),
  };
}

// The text up to its last line end: what a crash cut off is not a row.
std::string_view whole_lines(std::string_view text) {
  const std::size_t last = text.rfind('\n');
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

Error broken(std::string_view source, std::size_t line, const std::string& why) {
  return make_error(ErrorKind::kFailed, fmt::format("{}:{}: {}", source, line, why),
                    "the file must be a results.csv as septet compare writes it");
}

}  // namespace

ResultRow result_row(const ResultContext& context, const LevelResult& level) {
  ResultRow row;
  row.context = context;
  row.concurrency = static_cast<int>(std::lround(level.level.value));
  row.throughput = level.throughput;
  row.p50_us = level.p50_us();
  row.p90_us = level.p90_us();
  row.p95_us = level.p95_us();
  row.p99_us = level.p99_us();
  row.errors = level.failures.total();
  row.stable = level.stable;
  if (level.throughput_interval) {
    row.throughput_half_width = level.throughput_interval->half_width;
  }
  if (level.latency_interval && level.percentile == 90) {
    row.p90_half_width_us = level.latency_interval->half_width;
  }
  return row;
}

std::string results_header() {
  std::string line;
  for (const Column& each : columns()) {
    line += line.empty() ? "" : ",";
    line += each.name;
  }
  return line + '\n';
}

std::string results_line(const ResultRow& row) {
  std::string line;
  const char* separator = "";
  for (const Column& each : columns()) {
    line += separator + each.write_cell(row);
    separator = ",";
  }
  return line + '\n';
}

Result<std::vector<ResultRow>> parse_results(std::string_view text, std::string_view source) {
  const CsvTable table = parse_csv(whole_lines(text));
  const auto known = columns();
  std::vector<std::optional<std::size_t>> places;
  for (const Column& each : known) {
    places.push_back(table.column(each.name));
    if (each.presence == Presence::kRequired && !places.back()) {
      return broken(source, 1, fmt::format("there is no column '{}'", each.name));
    }
  }
  std::vector<ResultRow> rows;
  for (const CsvTable::Row& cells : table.rows) {
    ResultRow row;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (!places[i]) {
        continue;
      }
      if (*places[i] >= cells.cells.size()) {
        return broken(source, cells.line, fmt::format("'{}' is missing", known[i].name));
      }
      const std::string& cell = cells.cells[*places[i]];
      if (!known[i].read_cell(cell, row)) {
        return broken(source, cells.line,
                      fmt::format("'{}' is no value for '{}'", cell, known[i].name));
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace septet::measure
