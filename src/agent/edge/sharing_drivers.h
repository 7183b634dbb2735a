// The SharingDriver of this machine: on a simulated GPU the lease's group stands for the sharing
// daemon; on a real one MPS and time slices are driven (partition/edge).
#pragma once

#include <memory>
#include <string>

#include "gpu/gpu_driver.h"
#include "lend/edge/sharing_driver.h"

namespace septet::agent {

// run_folder: where sockets of sharing daemons go.
std::unique_ptr<lend::SharingDriver> make_sharing_driver(const gpu::DriverInfo& info,
                                                         const std::string& run_folder);

}  // namespace septet::agent
