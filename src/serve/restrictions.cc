#include "serve/restrictions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace septet::serve {

namespace {

using Kind = V2Path::Kind;

const std::vector<std::string> kGroups = {"health",        "metadata",     "inference",
                                          "shared-memory", "model-config", "model-repository",
                                          "statistics",    "trace",        "logging"};

// Takes as long for a wrong value as for the right one, so that time tells nothing.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = i < b.size() ? b[i] : '\0';
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ other));
  }
  return difference == 0;
}

}  // namespace

std::string_view group_of(Kind kind) {
  switch (kind) {
    case Kind::kLive:
    case Kind::kReady:
    case Kind::kModelReady:
      return "health";
    case Kind::kServerMetadata:
    case Kind::kModelMetadata:
      return "metadata";
    case Kind::kInfer:
      return "inference";
    case Kind::kModelConfig:
      return "model-config";
    case Kind::kModelStatistics:
    case Kind::kAllStatistics:
    case Kind::kMetrics:
      return "statistics";
    case Kind::kRepositoryIndex:
    case Kind::kRepositoryLoad:
    case Kind::kRepositoryUnload:
      return "model-repository";
    case Kind::kSystemMemoryStatus:
    case Kind::kSystemMemoryRegister:
    case Kind::kSystemMemoryUnregister:
    case Kind::kCudaMemoryStatus:
    case Kind::kCudaMemoryRegister:
    case Kind::kCudaMemoryUnregister:
      return "shared-memory";
    case Kind::kTraceSetting:
      return "trace";
    case Kind::kLogging:
      return "logging";
  }
  return "inference";
}

Result<Ok> Restrictions::add(std::string_view specification) {
  const std::size_t colon = specification.find(':');
  const std::size_t equals = specification.find('=', colon == std::string_view::npos ? 0 : colon);
  if (colon == std::string_view::npos || equals == std::string_view::npos || equals == colon + 1) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("cannot read the restriction '{}'", specification),
                      "write API[,API...]:HEADER=VALUE");
  }
  const Rule rule{std::string(specification.substr(colon + 1, equals - colon - 1)),
                  std::string(specification.substr(equals + 1))};
  for (const std::string_view group : split(specification.substr(0, colon), ',')) {
    if (std::find(kGroups.begin(), kGroups.end(), group) == kGroups.end()) {
      const auto nearest = nearest_name(group, kGroups);
      return make_error(ErrorKind::kUsage, fmt::format("there is no API group '{}'", group),
                        nearest ? fmt::format("did you mean '{}'?", *nearest)
                                : fmt::format("the groups are {}", join_words(kGroups)));
    }
    if (!rules_.emplace(group, rule).second) {
      return make_error(ErrorKind::kUsage, fmt::format("API group '{}' is restricted twice", group),
                        "restrict it once");
    }
  }
  return Ok{};
}

std::optional<std::string> Restrictions::missing_header(Kind kind, const HeaderLookup& find) const {
  const auto rule = rules_.find(group_of(kind));
  if (rule == rules_.end()) {
    return std::nullopt;
  }
  const auto value = find(rule->second.header);
  if (value && equal_in_constant_time(*value, rule->second.value)) {
    return std::nullopt;
  }
  return rule->second.header;
}

}  // namespace septet::serve
