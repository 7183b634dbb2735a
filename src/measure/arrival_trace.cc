#include "measure/arrival_trace.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"

namespace septet::measure {

namespace {

// "2023-11-16 18:17:03.9799600" in nanoseconds since some midnight; no time zone is meant.
std::optional<Duration> parse_time(std::string_view text) {
  // 0123456789012345678
  // YYYY-MM-DD hh:mm:ss.fffffff
  constexpr std::size_t kWithoutFraction = 19;
  if (text.size() < kWithoutFraction || text[4] != '-' || text[7] != '-' || text[10] != ' ' ||
      text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    return parse_uint(text.substr(at, length));
  };
  const auto year = number(0, 4);
  const auto month = number(5, 2);
  const auto day = number(8, 2);
  const auto hour = number(11, 2);
  const auto minute = number(14, 2);
  const auto second = number(17, 2);
  if (!year || !month || !day || !hour || !minute || !second || *hour > 23 || *minute > 59 ||
      *second > 60) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) {
    return std::nullopt;
  }
  Duration time = std::chrono::sys_days(date).time_since_epoch();
  time += std::chrono::hours(*hour) + std::chrono::minutes(*minute) + std::chrono::seconds(*second);
  std::string_view fraction = text.substr(kWithoutFraction);
  if (fraction.empty()) {
    return time;
  }
  const auto value = parse_double(fmt::format("0{}", fraction));
  if (fraction[0] != '.' || !value || *value >= 1) {
    return std::nullopt;
  }
  return time + from_seconds(*value);
}

Error wrong(std::size_t line, std::string_view what) {
  return make_error(ErrorKind::kUsage, fmt::format("line {} of the trace {}", line, what),
                    "rows are 'YYYY-MM-DD hh:mm:ss.fffffff,...' in order of time");
}

}  // namespace

Result<std::vector<Duration>> parse_arrival_trace(std::string_view text, double speed) {
  std::vector<Duration> gaps;
  std::optional<Duration> before;
  Duration first{};
  Duration scaled_before{};
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view field = trim(split(trim(line), ',').front());
    if (field.empty() || (number == 1 && field == "TIMESTAMP")) {
      continue;
    }
    const std::optional<Duration> time = parse_time(field);
    if (!time) {
      return wrong(number, fmt::format("does not begin with a time: '{}'", field));
    }
    if (before && *time < *before) {
      return wrong(number, "is earlier than the one before");
    }
    first = before ? first : *time;
    before = time;
    // Scaled from the start, so that rounding does not add up.
    const Duration scaled = from_seconds(to_seconds(*time - first) / speed);
    gaps.push_back(scaled - scaled_before);
    scaled_before = scaled;
  }
  if (gaps.size() < 2 || scaled_before == Duration::zero()) {
    return make_error(ErrorKind::kUsage, "the trace holds no two requests at different times");
  }
  return gaps;
}

}  // namespace septet::measure
