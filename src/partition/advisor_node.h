// What the advisor has to know about a GPU, from the table of models.
//
// Pure; any thread. What the machine offers (driver, MPS, licence, MIG mode) is the caller's to
// add.
#pragma once

#include "gpu/gpu_model.h"
#include "partition/advisor.h"

namespace septet::partition {

// Compute capability, memory, multiprocessors and profiles of the model.
Node node_for(const gpu::GpuModel& model);

// Multiprocessors with MIG off, which enabling MIG may reduce (A100: 108, in MIG mode 98). Falls
// back to the largest profile's where the product is not in the table.
unsigned multiprocessors_of(const gpu::GpuModel& model);

}  // namespace septet::partition
