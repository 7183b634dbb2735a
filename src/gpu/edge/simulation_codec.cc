#include "gpu/edge/simulation_codec.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "gpu/simulated_instances.h"

namespace septet::gpu {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "septet-simulated-node";
constexpr std::string_view kVersion = "1";

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
std::optional<T> optional_from(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) {
    return std::nullopt;
  }
  return found->get<T>();
}

Json code_json(const std::optional<NvmlCode>& code) {
  return code ? Json(static_cast<int>(*code)) : Json();
}

std::optional<NvmlCode> code_from(const Json& json, const char* key) {
  const auto number = optional_from<int>(json, key);
  return number ? std::optional(static_cast<NvmlCode>(*number)) : std::nullopt;
}

Json span_json(const Placement& span) { return Json::array({span.start, span.size}); }

Placement span_from(const Json& json) {
  return {json.at(0).get<unsigned>(), json.at(1).get<unsigned>()};
}

Json instance_json(const GpuInstance& instance) {
  Json computes = Json::array();
  for (const ComputeInstance& compute : instance.compute_instances) {
    computes.push_back({{"id", compute.id.value()},
                        {"profile", compute.profile_id.value()},
                        {"span", span_json(compute.placement)},
                        {"uuid", compute.uuid.value()}});
  }
  return {{"id", instance.id.value()},
          {"profile", instance.profile_id.value()},
          {"span", span_json(instance.placement)},
          {"compute", computes}};
}

GpuInstance instance_from(const Json& json) {
  GpuInstance instance;
  instance.id = GpuInstanceId(json.at("id").get<unsigned>());
  instance.profile_id = ProfileId(json.at("profile").get<unsigned>());
  instance.placement = span_from(json.at("span"));
  for (const Json& item : json.at("compute")) {
    ComputeInstance compute;
    compute.id = ComputeInstanceId(item.at("id").get<unsigned>());
    compute.profile_id = ProfileId(item.at("profile").get<unsigned>());
    compute.placement = span_from(item.at("span"));
    compute.uuid = MigUuid(item.at("uuid").get<std::string>());
    instance.compute_instances.push_back(std::move(compute));
  }
  return instance;
}

Json client_json(const SimulatedClient& client) {
  return {{"pid", client.pid},
          {"start", client.start_time},
          {"name", client.name},
          {"bytes", client.used_memory_bytes},
          {"kind", static_cast<int>(client.kind)},
          {"gi", optional_json(client.gpu_instance)},
          {"ci", optional_json(client.compute_instance)}};
}

SimulatedClient client_from(const Json& json) {
  SimulatedClient client;
  client.pid = json.at("pid").get<std::int64_t>();
  client.start_time = json.at("start").get<std::uint64_t>();
  client.name = json.at("name").get<std::string>();
  client.used_memory_bytes = json.at("bytes").get<std::int64_t>();
  client.kind = static_cast<ClientKind>(json.at("kind").get<int>());
  client.gpu_instance = optional_from<unsigned>(json, "gi");
  client.compute_instance = optional_from<unsigned>(json, "ci");
  return client;
}

Json override_json(const ProfileOverride& change) {
  return {{"profile", change.profile_id},
          {"id", optional_json(change.reported_id)},
          {"name", optional_json(change.name)},
          {"mib", optional_json(change.memory_mib)},
          {"max", optional_json(change.reported_max_instances)}};
}

ProfileOverride override_from(const Json& json) {
  ProfileOverride change;
  change.profile_id = json.at("profile").get<unsigned>();
  change.reported_id = optional_from<unsigned>(json, "id");
  change.name = optional_from<std::string>(json, "name");
  change.memory_mib = optional_from<std::int64_t>(json, "mib");
  change.reported_max_instances = optional_from<unsigned>(json, "max");
  return change;
}

template <typename T, typename F>
Json array_json(const std::vector<T>& items, F to_json) {
  Json array = Json::array();
  for (const T& item : items) {
    array.push_back(to_json(item));
  }
  return array;
}

template <typename F>
auto array_from(const Json& array, F from_json) {
  std::vector<decltype(from_json(array))> items;
  for (const Json& item : array) {
    items.push_back(from_json(item));
  }
  return items;
}

Json gpu_json(const SimulatedGpu& gpu) {
  return {{"model", gpu.config.model},
          {"index", gpu.config.index},
          {"seed", gpu.config.seed},
          {"placement", static_cast<int>(gpu.config.placement)},
          {"vm", gpu.config.virtual_machine},
          {"renumbers", gpu.config.renumbers_on_mode},
          {"overrides", array_json(gpu.config.overrides, override_json)},
          {"mig", gpu.mig_current},
          {"pending", gpu.mig_pending},
          {"persistence", gpu.persistence_mode},
          {"lost", gpu.lost},
          {"compute_mode", gpu.compute_mode},
          {"minor", gpu.minor},
          {"made_gi", gpu.created_gpu_instances},
          {"made_ci", gpu.created_compute_instances},
          {"instances", array_json(gpu.instances, instance_json)},
          {"clients", array_json(gpu.clients, client_json)}};
}

SimulatedGpu gpu_from(const Json& json) {
  SimulatedGpu gpu;
  gpu.config.model = json.at("model").get<std::string>();
  gpu.config.index = json.at("index").get<unsigned>();
  gpu.config.seed = json.at("seed").get<std::uint64_t>();
  gpu.config.placement = static_cast<PlacementPolicy>(json.at("placement").get<int>());
  gpu.config.virtual_machine = json.at("vm").get<bool>();
  gpu.config.renumbers_on_mode = json.at("renumbers").get<bool>();
  gpu.config.overrides = array_from(json.at("overrides"), override_from);
  gpu.mig_current = json.at("mig").get<bool>();
  gpu.mig_pending = json.at("pending").get<bool>();
  gpu.persistence_mode = json.at("persistence").get<bool>();
  gpu.lost = json.at("lost").get<bool>();
  gpu.compute_mode = json.at("compute_mode").get<unsigned>();
  gpu.minor = json.at("minor").get<unsigned>();
  gpu.created_gpu_instances = json.at("made_gi").get<std::uint64_t>();
  gpu.created_compute_instances = json.at("made_ci").get<std::uint64_t>();
  gpu.instances = array_from(json.at("instances"), instance_from);
  gpu.clients = array_from(json.at("clients"), client_from);
  return gpu;
}

Json rule_json(const FaultRule& rule) {
  return {{"call", rule.call},
          {"gpu", optional_json(rule.gpu)},
          {"gi", optional_json(rule.gpu_instance)},
          {"first", rule.first},
          {"count", rule.count},
          {"probability", rule.probability},
          {"code", code_json(rule.code)},
          {"applies", rule.takes_effect},
          {"activation", code_json(rule.activation)},
          {"delay_ns", rule.delay.count()},
          {"kill", static_cast<int>(rule.kill)},
          {"loses", rule.loses_gpu},
          {"xid", optional_json(rule.xid)},
          {"foreign_create", optional_json(rule.foreign.create_profile)},
          {"foreign_destroy", optional_json(rule.foreign.destroy_instance)},
          {"seen", rule.seen}};
}

FaultRule rule_from(const Json& json) {
  FaultRule rule;
  rule.call = json.at("call").get<std::string>();
  rule.gpu = optional_from<unsigned>(json, "gpu");
  rule.gpu_instance = optional_from<unsigned>(json, "gi");
  rule.first = json.at("first").get<std::uint64_t>();
  rule.count = json.at("count").get<std::uint64_t>();
  rule.probability = json.at("probability").get<double>();
  rule.code = code_from(json, "code");
  rule.takes_effect = json.at("applies").get<bool>();
  rule.activation = code_from(json, "activation");
  rule.delay = Duration(json.at("delay_ns").get<std::int64_t>());
  rule.kill = static_cast<KillMoment>(json.at("kill").get<int>());
  rule.loses_gpu = json.at("loses").get<bool>();
  rule.xid = optional_from<std::uint64_t>(json, "xid");
  rule.foreign.create_profile = optional_from<unsigned>(json, "foreign_create");
  rule.foreign.destroy_instance = optional_from<unsigned>(json, "foreign_destroy");
  rule.seen = json.at("seen").get<std::uint64_t>();
  return rule;
}

SimulatedNode node_from(const Json& json) {
  SimulatedNode node;
  const Json& config = json.at("config");
  node.config.name = config.at("name").get<std::string>();
  node.config.driver_version = config.at("driver").get<std::string>();
  node.config.cuda_version = config.at("cuda").get<std::string>();
  node.config.answers_with_mig_off = config.at("answers_with_mig_off").get<bool>();
  node.config.requires_root = config.at("requires_root").get<bool>();
  node.config.seed = config.at("seed").get<std::uint64_t>();
  node.gpus = array_from(json.at("gpus"), gpu_from);
  node.faults = array_from(json.at("faults"), rule_from);
  for (const Json& event : json.at("events")) {
    node.events.push_back({event.at("gpu").get<unsigned>(), event.at("xid").get<std::uint64_t>(),
                           optional_from<unsigned>(event, "gi")});
  }
  node.calls = json.at("calls").get<std::uint64_t>();
  return node;
}

// What a file of ours could still hold after damage by others; empty when all is well.
std::string broken_node(const SimulatedNode& node) {
  for (const SimulatedGpu& gpu : node.gpus) {
    if (!find_gpu_model(gpu.config.model).ok()) {
      return fmt::format("unknown GPU model '{}'", gpu.config.model);
    }
    if (std::string broken = broken_invariant(gpu); !broken.empty()) {
      return fmt::format("GPU {}: {}", gpu.config.index, broken);
    }
  }
  return "";
}

Error damaged(const std::string& where, const std::string& why) {
  return make_error(ErrorKind::kFailed,
                    fmt::format("cannot read the simulated node in {}: {}", where, why),
                    "septet sim destroy removes it, then create it anew");
}

}  // namespace

std::string encode(const SimulatedNode& node) {
  const auto event_json = [](const XidEvent& event) {
    return Json{{"gpu", event.gpu}, {"xid", event.xid}, {"gi", optional_json(event.gpu_instance)}};
  };
  const Json json = {{"config",
                      {{"name", node.config.name},
                       {"driver", node.config.driver_version},
                       {"cuda", node.config.cuda_version},
                       {"answers_with_mig_off", node.config.answers_with_mig_off},
                       {"requires_root", node.config.requires_root},
                       {"seed", node.config.seed}}},
                     {"gpus", array_json(node.gpus, gpu_json)},
                     {"faults", array_json(node.faults, rule_json)},
                     {"events", array_json(node.events, event_json)},
                     {"calls", node.calls}};
  return fmt::format("{} {} {}\n{}\n", kFormat, kVersion, node.generation, json.dump());
}

std::optional<std::uint64_t> generation_of(std::string_view text) {
  const auto words = split(text.substr(0, text.find('\n')), ' ');
  if (words.size() != 3 || words[0] != kFormat || words[1] != kVersion) {
    return std::nullopt;
  }
  return parse_uint(words[2]);
}

Result<SimulatedNode> decode(std::string_view text, const std::string& where) {
  const auto generation = generation_of(text);
  if (!generation) {
    return damaged(where, text.starts_with(kFormat) ? "another version of septet wrote it"
                                                    : "it is not a file of septet");
  }
  try {
    SimulatedNode node = node_from(Json::parse(text.substr(text.find('\n') + 1)));
    node.generation = *generation;
    if (const std::string broken = broken_node(node); !broken.empty()) {
      return damaged(where, broken);
    }
    return node;
  } catch (const Json::exception& error) {
    return damaged(where, error.what());
  }
}

}  // namespace septet::gpu
