// GPU instances and compute instances of a simulated GPU: capacity, creation, destruction.
//
// Rules: driver-like placement (the span that leaves the most possible placements, ties to the
// lowest start), instance ids as GpuInstanceIdMap says, ids reused, a new MIG UUID at every
// creation. Functions on the value SimulatedGpu; its owner serialises the calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/simulated_gpu.h"

namespace septet::gpu {

// How many more instances of the profile fit now; nothing for an unknown profile.
std::optional<unsigned> remaining_capacity(const SimulatedGpu& gpu, ProfileId profile);

// Where no placement is given the policy chooses. On success `created` is filled.
NvmlCode create_gpu_instance(SimulatedGpu& gpu, ProfileId profile,
                             std::optional<Placement> placement, GpuInstance& created);
NvmlCode destroy_gpu_instance(SimulatedGpu& gpu, GpuInstanceId instance);

std::vector<ComputeInstanceProfile> compute_profiles_of(const SimulatedGpu& gpu,
                                                        const GpuInstance& instance);
// The legal spans of a compute profile, in compute slices of the instance.
std::vector<Placement> compute_placements(const SimulatedGpu& gpu, const GpuInstance& instance,
                                          ProfileId profile);
std::optional<unsigned> remaining_compute_capacity(const SimulatedGpu& gpu,
                                                   const GpuInstance& instance, ProfileId profile);
NvmlCode create_compute_instance(SimulatedGpu& gpu, GpuInstanceId instance, ProfileId profile,
                                 std::optional<Placement> placement, ComputeInstance& created);
NvmlCode destroy_compute_instance(SimulatedGpu& gpu, GpuInstanceId instance,
                                  ComputeInstanceId compute_instance);

// "1g.5gb", or "1c.2g.10gb" for a part of a GPU instance; empty where there is no such device.
std::string mig_device_name(const SimulatedGpu& gpu, GpuInstanceId instance,
                            ComputeInstanceId compute_instance);

// No overlap, counts and engines within bounds, clients only where something is; a text says what
// is broken, empty when all is well.
std::string broken_invariant(const SimulatedGpu& gpu);

}  // namespace septet::gpu
