// The files of a simulated node: which GPUs it has, and which faults its driver shows.
//
//   version: 1                          version: 1
//   driver: 535.261.03                  faults:
//   gpus:                                 - call: create_gpu_instance   # FaultRule::call
//     - model: A100-SXM4-40GB               nth: 3
//       count: 2                            return: insufficient_resources
//     - model: A30                        - call: write
//       virtual-machine: true               delay-ms: 200
//       profiles: [{id: 14, reported-max: 7}]   count: forever
//   faults: []                          # a node file may hold faults too
//
// docs/simulated_gpu.md lists every word. Unknown words, wrong types and versions are errors with
// file and line (kUsage); a missing file is kNotFound.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/simulated_node.h"

namespace septet::gpu {

// Whether --simulate's word means a file: it has a slash or ends in .yaml or .yml.
bool is_simulation_file(const std::string& specification);

Result<SimulatedNode> read_node_file(const std::string& path);
Result<std::vector<FaultRule>> read_fault_file(const std::string& path);

// The same from text; `where` stands for the file in errors.
Result<SimulatedNode> parse_node(const std::string& text, const std::string& where);
Result<std::vector<FaultRule>> parse_faults(const std::string& text, const std::string& where);

}  // namespace septet::gpu
