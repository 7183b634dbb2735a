// The stored form of a SimulatedNode: one line that names format, version and generation, then
// JSON.
//
//   septet-simulated-node 1 42
//   {"calls":17,"config":{...},"events":[],"faults":[...],"gpus":[...]}
//
// The first line alone tells a reader that its copy is still current. A foreign or newer file is
// refused, never reinterpreted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/simulated_node.h"

namespace septet::gpu {

std::string encode(const SimulatedNode& node);
// `where` names the file in errors.
Result<SimulatedNode> decode(std::string_view text, const std::string& where);
// The generation in the first line, or nothing where it is not ours.
std::optional<std::uint64_t> generation_of(std::string_view text);

}  // namespace septet::gpu
