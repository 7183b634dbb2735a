// The one way to a GpuDriver, and where simulated nodes live.
//
// A simulated node is a directory under the root of simulations: $SEPTET_SIM_ROOT, else
// $XDG_RUNTIME_DIR/septet/sim, else /tmp/septet-UID/sim. It stays there between commands, so that
// `septet --simulate M apply` and `septet --simulate M status` see one node.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "gpu/gpu_driver.h"
#include "gpu/simulated_node.h"

namespace septet::gpu {

// The driver of this machine, or with a specification (MODEL, MODELxN, a YAML file) a simulated
// one, created at its first use. kPrecondition when there is no driver; the error names --simulate.
// Sets SEPTET_SIMNVML_STATE for this process and its children, so call it before starting threads.
Result<std::unique_ptr<GpuDriver>> open_driver(const std::string& simulate);

// The fresh node that MODEL, MODELxN or a YAML file describes.
Result<SimulatedNode> specified_node(const std::string& specification);
// The node's directory, created with a fresh node when it is not there.
Result<std::string> ensure_simulation(const std::string& specification);
// The node's directory, whether it exists or not. kNotFound for an unknown model.
Result<std::string> simulation_directory(const std::string& specification);
// libnvidia-ml.so.1 of simnvml/, beside this program; $SEPTET_SIMNVML_LIBRARY overrides.
Result<std::string> simulated_library();

}  // namespace septet::gpu
