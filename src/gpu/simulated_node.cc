#include "gpu/simulated_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/prng.h"
#include "base/text.h"
#include "gpu/simulated_instances.h"

namespace septet::gpu {
namespace {

constexpr unsigned kMaxGpus = 32;

struct CallWord {
  std::string_view word;
  std::string_view function;
};
constexpr CallWord kCallWords[] = {
    {"create_gpu_instance", "DeviceCreateGpuInstance"},
    {"create_gpu_instance", "DeviceCreateGpuInstanceWithPlacement"},
    {"destroy_gpu_instance", "GpuInstanceDestroy"},
    {"create_compute_instance", "GpuInstanceCreateComputeInstance"},
    {"create_compute_instance", "GpuInstanceCreateComputeInstanceWithPlacement"},
    {"destroy_compute_instance", "ComputeInstanceDestroy"},
    {"set_mig_mode", "DeviceSetMigMode"},
};

bool meets(const FaultRule& rule, const CallSite& site) {
  return names_call(rule.call, site.function) && (!rule.gpu || rule.gpu == site.gpu) &&
         (!rule.gpu_instance || rule.gpu_instance == site.gpu_instance);
}

bool is_spent(const FaultRule& rule) {
  return rule.count > 0 && rule.seen >= rule.first + rule.count - 1;
}

void act_as_foreign_hand(SimulatedGpu& gpu, const ForeignHand& hand) {
  if (hand.create_profile) {
    GpuInstance created;
    static_cast<void>(
        create_gpu_instance(gpu, ProfileId(*hand.create_profile), std::nullopt, created));
  }
  if (hand.destroy_instance) {
    const GpuInstanceId id(*hand.destroy_instance);
    std::erase_if(gpu.clients,
                  [&](const SimulatedClient& c) { return c.gpu_instance == id.value(); });
    std::erase_if(gpu.instances, [&](const GpuInstance& instance) { return instance.id == id; });
  }
}

void apply_rule(SimulatedNode& node, const FaultRule& rule, const CallSite& site,
                CallVerdict& verdict) {
  if (rule.code && !verdict.code) {
    verdict.code = rule.code;
    verdict.applies = rule.takes_effect;
  }
  if (rule.activation && !verdict.activation) {
    verdict.activation = rule.activation;
  }
  verdict.delay += rule.delay;
  if (verdict.kill == KillMoment::kNever) {
    verdict.kill = rule.kill;
  }
  if (!site.gpu || *site.gpu >= node.gpus.size()) {
    return;
  }
  SimulatedGpu& gpu = node.gpus[*site.gpu];
  gpu.lost = gpu.lost || rule.loses_gpu;
  if (rule.xid) {
    node.events.push_back({*site.gpu, *rule.xid, site.gpu_instance});
  }
  act_as_foreign_hand(gpu, rule.foreign);
}

// Splits "H200x8" into name and count; a name that ends in such letters itself stays whole.
std::pair<std::string_view, std::optional<std::uint64_t>> split_count(std::string_view text) {
  const auto cross = text.rfind('x');
  if (cross == std::string_view::npos || find_gpu_model(text).ok()) {
    return {text, 1};
  }
  const auto digits = text.substr(cross + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return {text, 1};
  }
  return {text.substr(0, cross), parse_uint(digits)};
}

}  // namespace

Result<SimulatedNode> make_simulated_node(std::string_view specification) {
  const auto [name, count] = split_count(specification);
  const auto model = find_gpu_model(name);
  if (!model.ok()) {
    return model.error();
  }
  if (!count || *count < 1 || *count > kMaxGpus) {
    return make_error(ErrorKind::kUsage, fmt::format("cannot simulate '{}': 1 to {} GPUs per node",
                                                     specification, kMaxGpus));
  }
  SimulatedNode node;
  node.config.name = *count == 1 ? (*model)->key : fmt::format("{}x{}", (*model)->key, *count);
  for (unsigned index = 0; index < *count; ++index) {
    SimulatedGpuConfig config;
    config.model = (*model)->key;
    config.index = index;
    config.seed = node.config.seed;
    node.gpus.push_back(make_simulated_gpu(config));
  }
  return node;
}

bool names_call(std::string_view pattern, std::string_view function) {
  if (pattern == "any" || pattern == "*") {
    return true;
  }
  for (const CallWord& row : kCallWords) {
    if (row.function == function && (pattern == row.word || pattern == "write")) {
      return true;
    }
  }
  if (pattern.ends_with('*')) {
    return function.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  return pattern == function;
}

CallVerdict begin_call(SimulatedNode& node, const CallSite& site) {
  ++node.calls;
  CallVerdict verdict;
  for (FaultRule& rule : node.faults) {
    if (is_spent(rule) || !meets(rule, site)) {
      continue;
    }
    ++rule.seen;
    Prng chance(node.config.seed ^ (rule.seen * 0x9E3779B97F4A7C15ULL));
    if (rule.seen >= rule.first && (rule.probability >= 1 || chance.chance(rule.probability))) {
      apply_rule(node, rule, site, verdict);
    }
  }
  if (site.gpu && *site.gpu < node.gpus.size() && node.gpus[*site.gpu].lost) {
    verdict.code = NvmlCode::kGpuIsLost;
    verdict.applies = false;
  }
  return verdict;
}

bool has_live_faults(const SimulatedNode& node) {
  return std::any_of(node.faults.begin(), node.faults.end(),
                     [](const FaultRule& rule) { return !is_spent(rule); });
}

void reboot(SimulatedNode& node) {
  for (SimulatedGpu& gpu : node.gpus) {
    reboot(gpu);
  }
  node.events.clear();
}

}  // namespace septet::gpu
