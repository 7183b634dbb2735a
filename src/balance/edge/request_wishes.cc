#include "balance/edge/request_wishes.h"

#include "base/text.h"

namespace septet::balance {

namespace {

constexpr std::string_view kPrefix = "septet-";
constexpr std::uint64_t kMaxTimeoutMs = 24ULL * 3600 * 1000;

}  // namespace

void RequestWishes::read_field(std::string_view name, std::string_view value) {
  if (name.size() < kPrefix.size() ||
      !equal_ignoring_case(name.substr(0, kPrefix.size()), kPrefix)) {
    return;
  }
  const std::string_view what = name.substr(kPrefix.size());
  const std::uint64_t number = parse_uint(value).value_or(0);
  if (equal_ignoring_case(what, "timeout-ms") && number > 0 && number < kMaxTimeoutMs) {
    timeout = milliseconds(static_cast<std::int64_t>(number));
  } else if (equal_ignoring_case(what, "priority") && number >= 1 && number <= 255) {
    priority = static_cast<std::uint32_t>(number);
  } else if (equal_ignoring_case(what, "tenant")) {
    tenant = value;
  }
}

}  // namespace septet::balance
