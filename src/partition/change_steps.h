// The steps from an observed GPU to a layout, one driver call each, in the order that works:
//
//   mode on -> destroy compute instances -> destroy GPU instances -> create GPU instance, its
//   compute instances, the next GPU instance ... -> (mode off, when that is wanted)
//
// Pure. Computed anew from every observation, so a step that was done, undone or done by somebody
// else meanwhile needs no special case.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "gpu/types.h"
#include "partition/layout.h"

namespace septet::partition {

struct SetMode {
  gpu::MigMode mode = gpu::MigMode::kEnabled;
  bool operator==(const SetMode&) const = default;
};
struct DestroyCompute {
  gpu::GpuInstanceId instance;
  gpu::ComputeInstanceId compute;
  std::string name;  // "3g.20gb@4", for messages
  bool operator==(const DestroyCompute&) const = default;
};
struct DestroyInstance {
  gpu::GpuInstanceId instance;
  std::string name;
  bool operator==(const DestroyInstance&) const = default;
};
struct CreateInstance {
  gpu::ProfileId profile;
  gpu::Placement placement;
  std::string name;
  bool operator==(const CreateInstance&) const = default;
};
struct CreateCompute {
  gpu::GpuInstanceId instance;
  unsigned slices = 0;
  std::string name;
  bool operator==(const CreateCompute&) const = default;
};
using ChangeStep =
    std::variant<SetMode, DestroyCompute, DestroyInstance, CreateInstance, CreateCompute>;

// "destroy GPU instance 3g.20gb@4 (id 1)".
std::string to_string(const ChangeStep& step);

// The steps still to do. Instances that are neither in the goal nor among `ours` belong to somebody
// else and are left alone. For a created GPU instance only its creation is listed (its id is not
// known yet); `hidden_steps` counts the compute instances that will follow.
struct StepList {
  std::vector<ChangeStep> steps;
  std::size_t hidden_steps = 0;
  std::vector<std::string> foreign;  // what stands there and is not ours
  std::size_t size() const { return steps.size() + hidden_steps; }
};
StepList steps_to(const gpu::GpuState& observed, const Layout& goal, const Layout& ours);

// Whether any of the steps destroys something.
bool destroys_anything(const StepList& list);

}  // namespace septet::partition
