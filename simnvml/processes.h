// The processes that a device shows, for the public lists and nvidia-smi's private ones.
#pragma once

#include <vector>

#include "library.h"

namespace septet::simnvml {

// Clients of the kind; with MIG on, a MIG device shows its own only and the GPU shows all.
std::vector<gpu::SimulatedClient> clients_of(const CallContext& call, gpu::ClientKind kind);

}  // namespace septet::simnvml
