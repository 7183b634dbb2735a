#include "agent/edge/lend_config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "os/durable_file.h"
#include "partition/time_slice.h"

namespace septet::agent {

namespace {

Error bad_value(const YAML::Node& node, const std::string& key, const std::string& why) {
  return make_error(ErrorKind::kUsage, fmt::format("{}: {}: {}", node.Mark().line + 1, key, why));
}

Error unknown_key(const YAML::Node& node, const std::string& where, const std::string& key,
                  const std::vector<std::string>& names) {
  const auto near = nearest_name(key, names);
  return bad_value(node, where + "." + key,
                   near ? fmt::format("is unknown; did you mean {}?", *near)
                        : "is unknown; there are " + join_words(names));
}

// The scalar's text; kUsage for lists, maps and nothing.
Result<std::string> text_of(const std::string& key, const YAML::Node& node) {
  if (!node.IsScalar()) {
    return bad_value(node, key, "is one value");
  }
  return node.Scalar();
}

Result<Ok> read_duration(const std::string& key, const YAML::Node& node, Duration& target) {
  const Result<std::string> text = text_of(key, node);
  SEPTET_TRY(text);
  const Result<Duration> duration = parse_duration(*text);
  if (!duration.ok() || *duration <= Duration::zero()) {
    return bad_value(node, key, duration.ok() ? "must be above zero" : duration.error().message);
  }
  target = *duration;
  return Ok{};
}

// A number from 0 to most.
Result<double> read_number(const std::string& key, const YAML::Node& node, double most,
                           const char* what) {
  const Result<std::string> text = text_of(key, node);
  SEPTET_TRY(text);
  const auto number = parse_double(*text);
  if (!number || *number < 0 || *number > most) {
    return bad_value(node, key, what);
  }
  return *number;
}

constexpr double kMostLeases = 100000;
constexpr double kMostPercent = 100000;  // of one GPU: a thousand of them

Result<Ok> read_quota_key(const std::string& where, const std::string& key, const YAML::Node& node,
                          lend::Quota& quota) {
  const std::string path = where + "." + key;
  if (key == "leases") {
    const Result<double> number = read_number(path, node, kMostLeases, "is a number of leases");
    SEPTET_TRY(number);
    quota.leases = static_cast<unsigned>(*number);
  } else if (key == "gpu_percent") {
    const Result<double> number =
        read_number(path, node, kMostPercent, "is a percentage of one GPU, such as 200 for two");
    SEPTET_TRY(number);
    quota.share_permille = static_cast<unsigned>(std::lround(*number * 10));
  } else if (key == "memory") {
    const Result<std::string> text = text_of(path, node);
    SEPTET_TRY(text);
    const Result<std::int64_t> memory = parse_memory_mib(*text);
    if (!memory.ok()) {
      return bad_value(node, path, memory.error().message);
    }
    quota.memory_mib = *memory;
  } else if (key == "time") {
    Duration time{};
    SEPTET_TRY(read_duration(path, node, time));
    quota.time = time;
  } else {
    return unknown_key(node, where, key, {"leases", "gpu_percent", "memory", "time"});
  }
  return Ok{};
}

Result<lend::Quota> read_quota(const std::string& where, const YAML::Node& node) {
  if (!node.IsMap()) {
    return bad_value(node, where, "is a map such as {leases: 4}");
  }
  lend::Quota quota;
  for (const auto& entry : node) {
    SEPTET_TRY(read_quota_key(where, entry.first.as<std::string>(), entry.second, quota));
  }
  return quota;
}

Result<std::map<std::string, lend::Quota>> read_quotas(const std::string& where,
                                                       const YAML::Node& node) {
  if (!node.IsMap()) {
    return bad_value(node, where, "is a map from names to quotas");
  }
  std::map<std::string, lend::Quota> quotas;
  for (const auto& entry : node) {
    const auto name = entry.first.as<std::string>();
    Result<lend::Quota> quota = read_quota(where + "." + name, entry.second);
    SEPTET_TRY(quota);
    quotas.emplace(name, *std::move(quota));
  }
  return quotas;
}

// The keys of lend: that are durations, and where each belongs.
std::map<std::string, Duration*> durations_of(lend::LenderOptions& options) {
  lend::Policy& policy = options.policy;
  return {{"default_time", &policy.default_time},
          {"warn_before_expiry", &policy.warn_before_expiry},
          {"idle_grace", &policy.idle_grace},
          {"kill_grace", &policy.kill_grace},
          {"starving_after", &policy.starving_after},
          {"gate_hold", &policy.gate_hold},
          {"sample_every", &options.sample_every},
          {"observe_every", &options.observe_every},
          {"adopt_within", &options.adopt_within}};
}

Result<Ok> read_lend_key(const std::string& key, const YAML::Node& node,
                         lend::LenderOptions& options) {
  const std::string where = "lend." + key;
  const std::map<std::string, Duration*> durations = durations_of(options);
  if (const auto known = durations.find(key); known != durations.end()) {
    return read_duration(where, node, *known->second);
  }
  if (key == "may_change_layout") {
    if (!YAML::convert<bool>::decode(node, options.policy.may_change_layout)) {
      return bad_value(node, where, "is true or false");
    }
    return Ok{};
  }
  if (key == "quota") {
    Result<lend::Quota> quota = read_quota(where, node);
    SEPTET_TRY(quota);
    options.policy.every_user = *std::move(quota);
    return Ok{};
  }
  if (key == "users" || key == "groups") {
    auto quotas = read_quotas(where, node);
    SEPTET_TRY(quotas);
    (key == "users" ? options.policy.users : options.policy.groups) = *std::move(quotas);
    return Ok{};
  }
  std::vector<std::string> names = {"may_change_layout", "quota", "users", "groups"};
  for (const auto& [name, target] : durations) {
    names.push_back(name);
  }
  return unknown_key(node, "lend", key, names);
}

Result<Ok> read_gpus(const std::string& where, const YAML::Node& node, SharingRule& rule) {
  if (node.IsScalar()) {
    // "all" is what a rule without the key says too.
    if (node.Scalar() != "all") {
      rule.gpus.push_back(node.Scalar());
    }
    return Ok{};
  }
  if (!node.IsSequence() || node.size() == 0) {
    return bad_value(node, where, "is all, a GPU or a list of GPUs, by index, UUID or PCI address");
  }
  for (const YAML::Node& each : node) {
    Result<std::string> gpu = text_of(where, each);
    SEPTET_TRY(gpu);
    rule.gpus.push_back(*std::move(gpu));
  }
  return Ok{};
}

Result<Ok> read_rule_key(const std::string& where, const std::string& key, const YAML::Node& node,
                         SharingRule& rule) {
  const std::string path = where + "." + key;
  if (key == "gpus") {
    return read_gpus(path, node, rule);
  }
  if (key == "technique") {
    const Result<std::string> word = text_of(path, node);
    SEPTET_TRY(word);
    const auto technique = parse_sharing_technique(*word);
    if (!technique) {
      return bad_value(
          node, path,
          fmt::format("'{}' is none of {}", *word, join_words(sharing_technique_words())));
    }
    rule.technique = *technique;
    return Ok{};
  }
  if (key == "clients") {
    constexpr double kMostClients = 60;  // of any driver
    const Result<double> number =
        read_number(path, node, kMostClients, "is a number of MPS clients from 1 to 60");
    SEPTET_TRY(number);
    if (*number < 1) {
      return bad_value(node, path, "is a number of MPS clients from 1 to 60");
    }
    rule.clients = static_cast<unsigned>(*number);
    return Ok{};
  }
  if (key == "slice") {
    const Result<std::string> word = text_of(path, node);
    SEPTET_TRY(word);
    rule.slice_length = partition::parse_slice_length(*word);
    if (!rule.slice_length) {
      return bad_value(node, path, "is default, short, medium or long");
    }
    return Ok{};
  }
  return unknown_key(node, where, key, {"gpus", "technique", "clients", "slice"});
}

Result<SharingRule> read_rule(const std::string& where, const YAML::Node& node) {
  if (!node.IsMap() || !node["technique"]) {
    return bad_value(node, where, "is a map with a technique, such as {gpus: 0, technique: mig}");
  }
  SharingRule rule;
  for (const auto& entry : node) {
    SEPTET_TRY(read_rule_key(where, entry.first.as<std::string>(), entry.second, rule));
  }
  const bool is_mps =
      rule.technique == SharingTechnique::kMps || rule.technique == SharingTechnique::kMigMps;
  if (rule.clients && !is_mps) {
    return bad_value(node["clients"], where + ".clients", "belongs to mps and mig_mps");
  }
  if (rule.slice_length && rule.technique != SharingTechnique::kTimeSlice) {
    return bad_value(node["slice"], where + ".slice", "belongs to time_slice");
  }
  return rule;
}

Result<LendConfig> read_document(const YAML::Node& document) {
  LendConfig config;
  if (!document.IsMap()) {
    return config;
  }
  if (const YAML::Node lend = document["lend"]; lend && !lend.IsNull()) {
    if (!lend.IsMap()) {
      return bad_value(lend, "lend", "is a map of keys and values");
    }
    for (const auto& entry : lend) {
      SEPTET_TRY(read_lend_key(entry.first.as<std::string>(), entry.second, config.lender));
    }
  }
  if (const YAML::Node sharing = document["sharing"]; sharing && !sharing.IsNull()) {
    if (!sharing.IsSequence()) {
      return bad_value(sharing, "sharing", "is a list of rules");
    }
    for (std::size_t i = 0; i < sharing.size(); ++i) {
      Result<SharingRule> rule = read_rule(fmt::format("sharing[{}]", i), sharing[i]);
      SEPTET_TRY(rule);
      config.sharing.push_back(*std::move(rule));
    }
  }
  return config;
}

}  // namespace

Result<LendConfig> parse_lend_config(const std::string& yaml, const std::string& file) {
  try {
    Result<LendConfig> config = read_document(YAML::Load(yaml));
    if (config.ok()) {
      return config;
    }
    Error error = config.error();
    error.message = file + ":" + error.message;
    return error;
  } catch (const YAML::Exception& exception) {
    return make_error(ErrorKind::kUsage, fmt::format("{}:{}: is not understood: {}", file,
                                                     exception.mark.line + 1, exception.msg));
  }
}

Result<LendConfig> read_lend_config(const std::string& path) {
  const Result<std::string> text = os::read_whole_file(path);
  SEPTET_TRY(text);
  return parse_lend_config(*text, path);
}

}  // namespace septet::agent
