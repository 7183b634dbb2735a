#include "inference/model_config.h"

#include <algorithm>

namespace septet::inference {

namespace {

const TensorConfig* find_named(const std::vector<TensorConfig>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorConfig& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

const TensorConfig* ModelConfig::find_input(std::string_view input_name) const {
  return find_named(inputs, input_name);
}

const TensorConfig* ModelConfig::find_output(std::string_view output_name) const {
  return find_named(outputs, output_name);
}

int ModelConfig::instance_count() const {
  int count = 0;
  for (const InstanceGroup& group : instance_groups) {
    count += group.count;
  }
  return std::max(count, 1);
}

bool ModelConfig::asks_for_gpu() const {
  return std::any_of(
      instance_groups.begin(), instance_groups.end(),
      [](const InstanceGroup& group) { return group.kind == InstanceGroup::Kind::kGpu; });
}

}  // namespace septet::inference
