#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace septet {

namespace {

struct Unit {
  std::string_view name;
  Duration length;
};

// Largest first: the order in which a duration is written.
constexpr std::array<Unit, 7> kUnits = {{{"d", std::chrono::hours(24)},
                                         {"h", std::chrono::hours(1)},
                                         {"m", std::chrono::minutes(1)},
                                         {"s", seconds(1)},
                                         {"ms", milliseconds(1)},
                                         {"us", microseconds(1)},
                                         {"ns", Duration(1)}}};

// A century: longer is a mistake, and sums of such durations stay far from overflow.
constexpr double kLongestSeconds = 3.2e9;

Error bad_duration(std::string_view text) {
  return make_error(ErrorKind::kUsage, fmt::format("'{}' is not a duration", text),
                    "write a number and a unit, such as 30m, 4h or 1h30m");
}

bool is_number_part(char c) { return (c >= '0' && c <= '9') || c == '.'; }

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") {
    return Duration::zero();
  }
  Duration sum{};
  std::size_t next_unit = 0;  // units must descend, so "5m1h" and "1m1m" are refused
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t number_end = at;
    while (number_end < text.size() && is_number_part(text[number_end])) {
      ++number_end;
    }
    std::size_t unit_end = number_end;
    while (unit_end < text.size() && !is_number_part(text[unit_end])) {
      ++unit_end;
    }
    const auto number = parse_double(text.substr(at, number_end - at));
    const std::string_view unit = text.substr(number_end, unit_end - number_end);
    while (next_unit < kUnits.size() && kUnits[next_unit].name != unit) {
      ++next_unit;
    }
    if (!number || next_unit == kUnits.size()) {
      return bad_duration(text);
    }
    const double value = *number * to_seconds(kUnits[next_unit].length);
    if (value + to_seconds(sum) > kLongestSeconds) {
      return make_error(ErrorKind::kUsage, fmt::format("the duration '{}' is too long", text));
    }
    sum += from_seconds(value);
    ++next_unit;
    at = unit_end;
  }
  if (text.empty()) {
    return bad_duration(text);
  }
  return sum;
}

std::string format_duration(Duration duration) {
  if (duration < Duration::zero()) {
    return "-" + format_duration(-duration);
  }
  std::string text;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const auto count = duration / kUnits[i].length;
    if (count == 0) {
      if (!text.empty()) {
        break;
      }
      continue;
    }
    duration -= count * kUnits[i].length;
    if (!text.empty()) {
      return fmt::format("{} {}{}", text, count, kUnits[i].name);
    }
    text = fmt::format("{}{}", count, kUnits[i].name);
    // Below a minute one unit says enough.
    if (kUnits[i].length <= seconds(1)) {
      break;
    }
  }
  return text.empty() ? "0s" : text;
}

Result<std::int64_t> parse_memory_mib(std::string_view text) {
  std::size_t number_end = 0;
  while (number_end < text.size() && is_number_part(text[number_end])) {
    ++number_end;
  }
  const auto number = parse_double(text.substr(0, number_end));
  const std::string unit = to_lower(text.substr(number_end));
  double factor = 0;
  if (unit.empty() || unit == "m" || unit == "mb" || unit == "mib") {
    factor = 1;
  } else if (unit == "g" || unit == "gb" || unit == "gib") {
    factor = 1024;
  } else if (unit == "t" || unit == "tb" || unit == "tib") {
    factor = 1024.0 * 1024;
  }
  if (!number || factor == 0 || *number < 0) {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' is not a memory size", text),
                      "write a number and a unit, such as 10GB or 512MiB");
  }
  constexpr double kLargest = 1e12;
  if (*number * factor > kLargest) {
    return make_error(ErrorKind::kUsage, fmt::format("the memory size '{}' is too large", text));
  }
  return static_cast<std::int64_t>(std::llround(*number * factor));
}

}  // namespace septet
