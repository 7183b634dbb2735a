#include "gpu/edge/simulation_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>

#include "base/text.h"

namespace septet::gpu {
namespace {

constexpr std::uint64_t kMaxGpus = 32;

// Thrown and caught inside this file only: yaml-cpp throws as well.
struct FileError {
  int line;
  std::string message;
};

[[noreturn]] void refuse(const YAML::Node& node, std::string message) {
  throw FileError{node.Mark().line + 1, std::move(message)};
}

void allow_keys(const YAML::Node& node, std::initializer_list<const char*> allowed) {
  if (!node.IsMap()) {
    refuse(node, "expected a mapping of words to values");
  }
  for (const auto& entry : node) {
    const std::string key = entry.first.as<std::string>();
    const std::vector<std::string> known(allowed.begin(), allowed.end());
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const auto nearest = nearest_name(key, known);
      refuse(entry.first, fmt::format("unknown word '{}'; {}", key,
                                      nearest ? fmt::format("did you mean '{}'?", *nearest)
                                              : "allowed are " + join_words(known)));
    }
  }
}

template <typename T>
void read(const YAML::Node& map, const char* key, T& value) {
  const YAML::Node node = map[key];
  if (!node) {
    return;
  }
  try {
    value = node.as<T>();
  } catch (const YAML::Exception&) {
    refuse(node, fmt::format("'{}' has a value that does not fit", key));
  }
}

template <typename T>
void read(const YAML::Node& map, const char* key, std::optional<T>& value) {
  if (map[key]) {
    T found{};
    read(map, key, found);
    value = found;
  }
}

// Whole numbers by our own parser: yaml-cpp wraps negative ones around.
std::uint64_t whole_number(const YAML::Node& node, const char* key, std::uint64_t most) {
  const auto value = node.IsScalar() ? parse_uint(node.Scalar()) : std::nullopt;
  if (!value || *value > most) {
    refuse(node, fmt::format("'{}' must be a whole number from 0 to {}", key, most));
  }
  return *value;
}

template <typename T>
void read_number(const YAML::Node& map, const char* key, T& value, std::uint64_t most) {
  if (map[key]) {
    value = static_cast<T>(whole_number(map[key], key, most));
  }
}

template <typename T>
void read_number(const YAML::Node& map, const char* key, std::optional<T>& value,
                 std::uint64_t most) {
  if (map[key]) {
    value = static_cast<T>(whole_number(map[key], key, most));
  }
}

template <typename T>
struct Word {
  const char* name;
  T value;
};

template <typename T, std::size_t N>
void read_word(const YAML::Node& map, const char* key, const Word<T> (&words)[N], T& value) {
  const YAML::Node node = map[key];
  if (!node) {
    return;
  }
  std::vector<std::string> names;
  for (const Word<T>& word : words) {
    if (node.IsScalar() && node.Scalar() == word.name) {
      value = word.value;
      return;
    }
    names.emplace_back(word.name);
  }
  refuse(node, fmt::format("'{}' must be one of {}", key, join_words(names)));
}

void read_code(const YAML::Node& map, const char* key, std::optional<NvmlCode>& code) {
  const YAML::Node node = map[key];
  if (!node) {
    return;
  }
  code = node.IsScalar() ? parse_nvml_code(node.Scalar()) : std::nullopt;
  if (!code) {
    refuse(node, fmt::format("'{}' must be an NVML code by name (in_use) or number (19)", key));
  }
}

void check_version(const YAML::Node& root) {
  const YAML::Node version = root["version"];
  if (!version || !version.IsScalar() || version.Scalar() != "1") {
    refuse(version ? version : root, "'version: 1' is needed");
  }
}

FaultRule rule_of(const YAML::Node& node) {
  allow_keys(
      node, {"call", "gpu", "gpu-instance", "nth", "count", "probability", "return", "takes-effect",
             "activation", "delay-ms", "kill", "loses-gpu", "xid", "foreign"});
  constexpr Word<KillMoment> kKillWords[] = {{"before", KillMoment::kBefore},
                                             {"after", KillMoment::kAfter}};
  constexpr std::uint64_t kMost = 1'000'000'000;
  FaultRule rule;
  read(node, "call", rule.call);
  if (rule.call.empty()) {
    refuse(node, "a fault needs 'call'");
  }
  read_number(node, "gpu", rule.gpu, kMaxGpus - 1);
  read_number(node, "gpu-instance", rule.gpu_instance, 255);
  read_number(node, "nth", rule.first, kMost);
  rule.first = std::max<std::uint64_t>(rule.first, 1);
  if (node["count"] && node["count"].IsScalar() && node["count"].Scalar() == "forever") {
    rule.count = 0;
  } else {
    read_number(node, "count", rule.count, kMost);
  }
  read(node, "probability", rule.probability);
  if (!(rule.probability >= 0 && rule.probability <= 1)) {
    refuse(node["probability"], "'probability' must be from 0 to 1");
  }
  read_code(node, "return", rule.code);
  read(node, "takes-effect", rule.takes_effect);
  read_code(node, "activation", rule.activation);
  std::int64_t delay_ms = 0;
  read_number(node, "delay-ms", delay_ms, 3'600'000);
  rule.delay = milliseconds(delay_ms);
  read_word(node, "kill", kKillWords, rule.kill);
  read(node, "loses-gpu", rule.loses_gpu);
  read_number(node, "xid", rule.xid, 1000);
  if (const YAML::Node hand = node["foreign"]) {
    allow_keys(hand, {"create", "destroy"});
    read_number(hand, "create", rule.foreign.create_profile, 255);
    read_number(hand, "destroy", rule.foreign.destroy_instance, 255);
  }
  return rule;
}

std::vector<FaultRule> rules_of(const YAML::Node& list) {
  std::vector<FaultRule> rules;
  if (list && !list.IsSequence() && !list.IsNull()) {
    refuse(list, "'faults' must be a list");
  }
  for (const YAML::Node& node : list) {
    rules.push_back(rule_of(node));
  }
  return rules;
}

ProfileOverride override_of(const YAML::Node& node, const GpuModel& model) {
  allow_keys(node, {"id", "reported-id", "name", "memory-mib", "reported-max"});
  ProfileOverride change;
  if (!node["id"]) {
    refuse(node, "a profile needs the 'id' that the model gives it");
  }
  read_number(node, "id", change.profile_id, 255);
  if (find_profile(model, ProfileId(change.profile_id)) == nullptr) {
    refuse(node["id"], fmt::format("{} has no profile {}", model.key, change.profile_id));
  }
  read_number(node, "reported-id", change.reported_id, 255);
  read(node, "name", change.name);
  read_number(node, "memory-mib", change.memory_mib, 100'000'000);
  read_number(node, "reported-max", change.reported_max_instances, 64);
  return change;
}

void add_gpus(SimulatedNode& node, const YAML::Node& entry) {
  allow_keys(entry, {"model", "count", "mig", "placement", "virtual-machine", "renumbers-on-mode",
                     "profiles"});
  constexpr Word<PlacementPolicy> kPolicies[] = {{"driver", PlacementPolicy::kDriver},
                                                 {"first", PlacementPolicy::kFirst},
                                                 {"last", PlacementPolicy::kLast},
                                                 {"random", PlacementPolicy::kRandom},
                                                 {"r450", PlacementPolicy::kR450}};
  constexpr Word<bool> kModes[] = {{"enabled", true}, {"disabled", false}};
  SimulatedGpuConfig config;
  read(entry, "model", config.model);
  const auto model = find_gpu_model(config.model);
  if (!model.ok()) {
    refuse(entry["model"] ? entry["model"] : entry, model.error().text());
  }
  config.model = (*model)->key;
  config.seed = node.config.seed;
  std::uint64_t count = 1;
  bool mig = false;
  read_number(entry, "count", count, kMaxGpus);
  read_word(entry, "mig", kModes, mig);
  read_word(entry, "placement", kPolicies, config.placement);
  read(entry, "virtual-machine", config.virtual_machine);
  read(entry, "renumbers-on-mode", config.renumbers_on_mode);
  for (const YAML::Node& profile : entry["profiles"]) {
    config.overrides.push_back(override_of(profile, **model));
  }
  if (mig && !(*model)->mig.supported) {
    refuse(entry["mig"], fmt::format("{} has no MIG", (*model)->key));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    config.index = static_cast<unsigned>(node.gpus.size());
    SimulatedGpu gpu = make_simulated_gpu(config);
    gpu.mig_current = mig;
    gpu.mig_pending = mig;
    node.gpus.push_back(std::move(gpu));
  }
}

SimulatedNode node_of(const YAML::Node& root) {
  allow_keys(root, {"version", "driver", "cuda", "seed", "requires-root", "answers-with-mig-off",
                    "gpus", "faults"});
  check_version(root);
  SimulatedNode node;
  read(root, "driver", node.config.driver_version);
  read(root, "cuda", node.config.cuda_version);
  read_number(root, "seed", node.config.seed, ~std::uint64_t{0});
  read(root, "requires-root", node.config.requires_root);
  read(root, "answers-with-mig-off", node.config.answers_with_mig_off);
  const YAML::Node gpus = root["gpus"];
  if (!gpus || !gpus.IsSequence() || gpus.size() == 0) {
    refuse(gpus ? gpus : root, "'gpus' must be a list with at least one GPU");
  }
  for (const YAML::Node& entry : gpus) {
    add_gpus(node, entry);
  }
  if (node.gpus.size() > kMaxGpus) {
    refuse(gpus, fmt::format("{} GPUs are more than {}", node.gpus.size(), kMaxGpus));
  }
  node.faults = rules_of(root["faults"]);
  return node;
}

std::vector<FaultRule> faults_of(const YAML::Node& root) {
  allow_keys(root, {"version", "faults"});
  check_version(root);
  if (!root["faults"]) {
    refuse(root, "'faults' is needed; an empty list removes all");
  }
  return rules_of(root["faults"]);
}

template <typename T>
Result<T> parse(const std::string& text, const std::string& where,
                T (*convert)(const YAML::Node&)) {
  const auto refusal = [&where](int line, const std::string& message) {
    return make_error(ErrorKind::kUsage, fmt::format("{}:{}: {}", where, line, message));
  };
  try {
    return convert(YAML::Load(text));
  } catch (const FileError& error) {
    return refusal(error.line, error.message);
  } catch (const YAML::Exception& error) {
    return refusal(error.mark.line + 1, error.msg);
  }
}

Result<std::string> text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return make_error(ErrorKind::kNotFound, fmt::format("cannot read {}", path),
                      "name a model (septet --simulate A100-SXM4-40GB) or a YAML file that exists");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

bool is_simulation_file(const std::string& specification) {
  return specification.find('/') != std::string::npos || specification.ends_with(".yaml") ||
         specification.ends_with(".yml");
}

Result<SimulatedNode> parse_node(const std::string& text, const std::string& where) {
  return parse<SimulatedNode>(text, where, node_of);
}

Result<std::vector<FaultRule>> parse_faults(const std::string& text, const std::string& where) {
  return parse<std::vector<FaultRule>>(text, where, faults_of);
}

Result<SimulatedNode> read_node_file(const std::string& path) {
  const auto text = text_of(path);
  return text.ok() ? parse_node(*text, path) : text.error();
}

Result<std::vector<FaultRule>> read_fault_file(const std::string& path) {
  const auto text = text_of(path);
  return text.ok() ? parse_faults(*text, path) : text.error();
}

}  // namespace septet::gpu
