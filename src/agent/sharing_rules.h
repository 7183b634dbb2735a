// SharingRules: how each GPU of this machine is shared, as septet.yaml says under sharing:.
//
//   sharing:
//     - {gpus: [0, 1], technique: mig}
//     - {gpus: 2, technique: mps, clients: 4}
//     - {gpus: 3, technique: time_slice, slice: short}
//     - {technique: whole}                            # all others
//
// The first rule that names a GPU holds for it; a GPU that none names may be shared in any way. A
// rule says what may be lent there; it never changes a GPU. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/types.h"
#include "lend/types.h"
#include "partition/advisor.h"

namespace septet::agent {

enum class SharingTechnique {
  kAny,
  kMig,        // MIG devices, each to one holder
  kMigMps,     // MPS shares inside MIG devices
  kMps,        // MPS shares of the whole GPU
  kTimeSlice,  // turns on the whole GPU
  kWhole,      // the GPU to one holder
  kStreams,    // kept for one replica that runs models on streams: nothing is lent
  kVgpu,       // kept for virtual machines: nothing is lent
};
const char* to_string(SharingTechnique technique);
std::optional<SharingTechnique> parse_sharing_technique(std::string_view word);
// All the words, for messages.
std::vector<std::string> sharing_technique_words();

struct SharingRule {
  std::vector<std::string> gpus;  // index, UUID or PCI address; empty = all
  SharingTechnique technique = SharingTechnique::kAny;
  std::optional<unsigned> clients;                     // MPS: at most so many
  std::optional<partition::SliceLength> slice_length;  // time slices
  bool operator==(const SharingRule&) const = default;
};

// The rule that holds for the GPU; null = it may be shared in any way.
const SharingRule* rule_for(const std::vector<SharingRule>& rules, const gpu::GpuState& state);

// What the rule leaves of a partition of its GPU: what may be lent there, or why nothing may.
lend::Partition under_rule(lend::Partition partition, const SharingRule& rule);

}  // namespace septet::agent
