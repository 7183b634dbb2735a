#include "partition/advisor_node.h"

#include <algorithm>
#include <array>

namespace septet::partition {

namespace {

struct MultiprocessorRow {
  std::string_view key;
  unsigned count;
};

// Published figures of the products (vendor data sheets).
constexpr std::array kRows = {
    MultiprocessorRow{"A100-SXM4-40GB", 108},
    MultiprocessorRow{"A100-SXM4-80GB", 108},
    MultiprocessorRow{"A30", 56},
    MultiprocessorRow{"H100-SXM5-80GB", 132},
    MultiprocessorRow{"H100-NVL-94GB", 132},
    MultiprocessorRow{"GH200-96GB", 132},
    MultiprocessorRow{"H200", 132},
    MultiprocessorRow{"GH200-144GB", 132},
    MultiprocessorRow{"B200", 148},
    MultiprocessorRow{"GB200", 152},
    MultiprocessorRow{"RTX-PRO-6000", 188},
    MultiprocessorRow{"T4", 40},
    MultiprocessorRow{"L40S", 142},
};

}  // namespace

unsigned multiprocessors_of(const gpu::GpuModel& model) {
  for (const MultiprocessorRow& row : kRows) {
    if (row.key == model.key) {
      return row.count;
    }
  }
  unsigned most = 1;
  for (const gpu::GpuInstanceProfile& profile : model.profiles) {
    most = std::max(most, profile.engines.multiprocessors);
  }
  return most;
}

Node node_for(const gpu::GpuModel& model) {
  Node node;
  node.gpu_name = model.names.empty() ? model.key : model.names.front();
  node.compute_capability = model.compute_capability_major * 10 + model.compute_capability_minor;
  node.multiprocessors = multiprocessors_of(model);
  node.memory_mib = model.memory_total_mib;
  // A static MPS partition is made of chunks: 4 multiprocessors at 8.x, 8 from 9.0 on.
  node.chunk_multiprocessors = model.compute_capability_major >= 9 ? 8 : 4;
  node.profiles = model.profiles;
  return node;
}

}  // namespace septet::partition
