// Reads HostFacts from /proc and /dev; $SEPTET_SYSROOT stands for / in tests.
#pragma once

#include "gpu/host_facts.h"

namespace septet::gpu {

HostFacts read_host_facts();

}  // namespace septet::gpu
