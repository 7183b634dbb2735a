#include "agent/sharing_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace septet::agent {

namespace {

using lend::Partition;
using lend::SliceKind;

constexpr std::array<const char*, 8> kWords = {"any",        "mig",   "mig_mps", "mps",
                                               "time_slice", "whole", "streams", "vgpu"};

// NVML writes the PCI domain with eight digits, people and the kernel with four.
std::string short_pci(std::string_view id) {
  return to_lower(id.size() > 12 ? id.substr(id.size() - 12) : id);
}

bool names(const std::string& word, const gpu::GpuState& state) {
  return word == state.uuid.value() || word == fmt::format("{}", state.index) ||
         (!state.pci_bus_id.empty() && short_pci(word) == short_pci(state.pci_bus_id));
}

Partition kept(Partition partition, const std::string& why) {
  // A process that holds it is the better reason.
  if (partition.is_lendable) {
    partition.is_lendable = false;
    partition.why_not_lendable = why;
  }
  return partition;
}

Partition only(Partition partition, std::vector<SliceKind> kinds) {
  partition.kinds = std::move(kinds);
  return partition;
}

}  // namespace

const char* to_string(SharingTechnique technique) {
  return kWords[static_cast<std::size_t>(technique)];
}

std::optional<SharingTechnique> parse_sharing_technique(std::string_view word) {
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  return found == kWords.end()
             ? std::nullopt
             : std::optional(static_cast<SharingTechnique>(found - kWords.begin()));
}

std::vector<std::string> sharing_technique_words() { return {kWords.begin(), kWords.end()}; }

const SharingRule* rule_for(const std::vector<SharingRule>& rules, const gpu::GpuState& state) {
  for (const SharingRule& rule : rules) {
    if (rule.gpus.empty() || std::any_of(rule.gpus.begin(), rule.gpus.end(),
                                         [&](const auto& word) { return names(word, state); })) {
      return &rule;
    }
  }
  return nullptr;
}

Partition under_rule(Partition partition, const SharingRule& rule) {
  if (rule.clients) {
    partition.mps_clients = std::min(partition.mps_clients, *rule.clients);
  }
  if (rule.slice_length) {
    partition.time_slice = partition::to_string(*rule.slice_length);
  }
  const bool wants_mig =
      rule.technique == SharingTechnique::kMig || rule.technique == SharingTechnique::kMigMps;
  switch (rule.technique) {
    case SharingTechnique::kAny:
      return partition;
    case SharingTechnique::kStreams:
      return kept(std::move(partition), "septet.yaml keeps it for one replica's streams");
    case SharingTechnique::kVgpu:
      return kept(std::move(partition), "septet.yaml keeps it for virtual machines");
    case SharingTechnique::kMig:
    case SharingTechnique::kMigMps:
    case SharingTechnique::kMps:
    case SharingTechnique::kTimeSlice:
    case SharingTechnique::kWhole:
      break;
  }
  if (wants_mig == partition.is_whole_gpu()) {
    return kept(std::move(partition),
                fmt::format("septet.yaml shares it by {}, and MIG is {}", to_string(rule.technique),
                            wants_mig ? "off" : "on"));
  }
  if (rule.technique == SharingTechnique::kMps || rule.technique == SharingTechnique::kMigMps) {
    return only(std::move(partition), {SliceKind::kMps});
  }
  if (rule.technique == SharingTechnique::kTimeSlice) {
    return only(std::move(partition), {SliceKind::kTimeSlice});
  }
  // A want by memory alone is content with a whole GPU.
  return only(std::move(partition), {SliceKind::kWholeGpu, SliceKind::kInstance});
}

}  // namespace septet::agent
