#include "agent/edge/lend_policy.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "os/durable_file.h"

namespace septet::agent {

namespace {

Error bad_value(const std::string& key, const std::string& why) {
  return make_error(ErrorKind::kUsage, fmt::format("lend.{}: {}", key, why));
}

Result<Ok> read_duration(const std::string& key, const YAML::Node& node, Duration& target) {
  const Result<Duration> duration = parse_duration(node.as<std::string>());
  if (!duration.ok() || *duration <= Duration::zero()) {
    return bad_value(key, duration.ok() ? "must be above zero" : duration.error().message);
  }
  target = *duration;
  return Ok{};
}

Result<lend::Quota> read_quota(const std::string& path, const YAML::Node& node) {
  lend::Quota quota;
  if (!node.IsMap()) {
    return bad_value(path, "is a map such as {leases: 4}");
  }
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    const std::string where = path + "." + key;
    const auto text = entry.second.as<std::string>();
    if (key == "leases") {
      const auto number = parse_uint(text);
      if (!number || *number > 100000) {
        return bad_value(where, "is a number of leases");
      }
      quota.leases = static_cast<unsigned>(*number);
    } else if (key == "gpu_percent") {
      const auto number = parse_double(text);
      if (!number || *number < 0 || *number > 100000) {
        return bad_value(where, "is a percentage of one GPU, such as 200 for two");
      }
      quota.share_permille = static_cast<unsigned>(std::lround(*number * 10));
    } else if (key == "memory") {
      const Result<std::int64_t> memory = parse_memory_mib(text);
      if (!memory.ok()) {
        return bad_value(where, memory.error().message);
      }
      quota.memory_mib = *memory;
    } else if (key == "time") {
      Duration time{};
      SEPTET_TRY(read_duration(where, entry.second, time));
      quota.time = time;
    } else {
      return bad_value(where, "is unknown; there are leases, gpu_percent, memory and time");
    }
  }
  return quota;
}

Result<std::map<std::string, lend::Quota>> read_quotas(const std::string& path,
                                                       const YAML::Node& node) {
  std::map<std::string, lend::Quota> quotas;
  if (!node.IsMap()) {
    return bad_value(path, "is a map from names to quotas");
  }
  for (const auto& entry : node) {
    const auto name = entry.first.as<std::string>();
    Result<lend::Quota> quota = read_quota(path + "." + name, entry.second);
    SEPTET_TRY(quota);
    quotas.emplace(name, *std::move(quota));
  }
  return quotas;
}

struct DurationKey {
  const char* name;
  Duration lend::Policy::*field;
};

constexpr DurationKey kPolicyDurations[] = {
    {"default_time", &lend::Policy::default_time},
    {"warn_before_expiry", &lend::Policy::warn_before_expiry},
    {"idle_grace", &lend::Policy::idle_grace},
    {"kill_grace", &lend::Policy::kill_grace},
    {"starving_after", &lend::Policy::starving_after},
    {"gate_hold", &lend::Policy::gate_hold},
};

Result<Ok> read_key(const std::string& key, const YAML::Node& node, lend::LenderOptions& options) {
  for (const DurationKey& known : kPolicyDurations) {
    if (key == known.name) {
      return read_duration(key, node, options.policy.*known.field);
    }
  }
  if (key == "sample_every") {
    return read_duration(key, node, options.sample_every);
  }
  if (key == "observe_every") {
    return read_duration(key, node, options.observe_every);
  }
  if (key == "adopt_within") {
    return read_duration(key, node, options.adopt_within);
  }
  if (key == "may_change_layout") {
    options.policy.may_change_layout = node.as<bool>();
    return Ok{};
  }
  if (key == "quota") {
    Result<lend::Quota> quota = read_quota(key, node);
    SEPTET_TRY(quota);
    options.policy.every_user = *std::move(quota);
    return Ok{};
  }
  if (key == "users" || key == "groups") {
    auto quotas = read_quotas(key, node);
    SEPTET_TRY(quotas);
    (key == "users" ? options.policy.users : options.policy.groups) = *std::move(quotas);
    return Ok{};
  }
  std::vector<std::string> names = {
      "sample_every", "observe_every", "adopt_within", "may_change_layout",
      "quota",        "users",         "groups"};
  for (const DurationKey& known : kPolicyDurations) {
    names.emplace_back(known.name);
  }
  const auto near = nearest_name(key, names);
  return bad_value(
      key, near ? fmt::format("is unknown; did you mean {}?", *near) : std::string("is unknown"));
}

}  // namespace

Result<lend::LenderOptions> parse_lender_options(const std::string& yaml) {
  lend::LenderOptions options;
  try {
    const YAML::Node document = YAML::Load(yaml);
    if (!document.IsMap() || !document["lend"]) {
      return options;
    }
    if (!document["lend"].IsMap()) {
      return make_error(ErrorKind::kUsage, "'lend:' is a map of keys and values");
    }
    for (const auto& entry : document["lend"]) {
      SEPTET_TRY(read_key(entry.first.as<std::string>(), entry.second, options));
    }
  } catch (const YAML::Exception& exception) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("the configuration is not understood: {}", exception.what()));
  }
  return options;
}

Result<lend::LenderOptions> read_lender_options(const std::string& path) {
  const Result<std::string> text = os::read_whole_file(path);
  SEPTET_TRY(text);
  Result<lend::LenderOptions> options = parse_lender_options(*text);
  if (!options.ok()) {
    Error error = options.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return options;
}

}  // namespace septet::agent
