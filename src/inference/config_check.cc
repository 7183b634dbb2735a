#include "inference/config_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace septet::inference {

namespace {

Error bad(std::string message) { return make_error(ErrorKind::kUsage, std::move(message)); }

// Dimensions are 1 or more, or -1 for any.
bool good_dims(const Shape& dims) {
  return std::all_of(dims.begin(), dims.end(), [](std::int64_t d) { return d >= 1 || d == -1; });
}

std::optional<std::uint64_t> fixed_count(const Shape& dims) {
  return std::count(dims.begin(), dims.end(), -1) > 0 ? std::nullopt : element_count(dims);
}

Result<Ok> check_reshape(const TensorConfig& tensor) {
  if (!tensor.reshape) {
    return Ok{};
  }
  const auto free = [](const Shape& dims) { return std::count(dims.begin(), dims.end(), -1); };
  const auto outside = fixed_count(tensor.dims);
  const auto inside = fixed_count(*tensor.reshape);
  if (!good_dims(*tensor.reshape) || outside != inside ||
      free(tensor.dims) != free(*tensor.reshape) || free(tensor.dims) > 1) {
    return bad(fmt::format("reshape {} of '{}' does not hold as many elements as dims {}",
                           shape_text(*tensor.reshape), tensor.name, shape_text(tensor.dims)));
  }
  return Ok{};
}

Result<Ok> check_tensors(const std::vector<TensorConfig>& tensors, std::string_view role) {
  std::set<std::string> seen;
  for (const TensorConfig& tensor : tensors) {
    if (tensor.name.empty()) {
      return bad(fmt::format("an {} has no name", role));
    }
    if (!seen.insert(tensor.name).second) {
      return bad(fmt::format("{} '{}' is there twice", role, tensor.name));
    }
    if (!good_dims(tensor.dims)) {
      return bad(fmt::format("{} '{}' has dims {}; each must be 1 or more, or -1", role,
                             tensor.name, shape_text(tensor.dims)));
    }
    SEPTET_TRY(check_reshape(tensor));
  }
  return Ok{};
}

Result<Ok> check_queue_policies(const DynamicBatching& batching) {
  for (const auto& [level, policy] : batching.priority_queue_policies) {
    if (level < 1 || level > batching.priority_levels) {
      return bad(fmt::format("priority_queue_policy has a key {} outside 1..priority_levels ({})",
                             level, batching.priority_levels));
    }
  }
  return Ok{};
}

Result<Ok> check_batching(const ModelConfig& config) {
  const std::vector<int>* preferred = nullptr;
  if (config.dynamic_batching) {
    preferred = &config.dynamic_batching->preferred_batch_sizes;
    const DynamicBatching& batching = *config.dynamic_batching;
    if (batching.default_priority_level > batching.priority_levels ||
        (batching.priority_levels > 0 && batching.default_priority_level == 0)) {
      return bad(fmt::format("default_priority_level {} is outside 1..priority_levels ({})",
                             batching.default_priority_level, batching.priority_levels));
    }
    SEPTET_TRY(check_queue_policies(batching));
    if (batching.preserve_ordering && config.instance_count() > 1) {
      return bad("preserve_ordering is supported with one instance only");
    }
  } else if (config.sequence_batching) {
    preferred = &config.sequence_batching->preferred_batch_sizes;
    if (config.sequence_batching->preserve_ordering && config.instance_count() > 1) {
      return bad("preserve_ordering is supported with one instance only");
    }
  }
  if (preferred != nullptr) {
    for (const int size : *preferred) {
      if (size < 1 || size > std::max(config.max_batch_size, 1)) {
        return bad(fmt::format("preferred_batch_size {} is outside 1..max_batch_size ({})", size,
                               config.max_batch_size));
      }
    }
  }
  return Ok{};
}

// Whether a fixed dimension on one side meets the same or a free one on the other.
bool compatible(const Shape& config, const Shape& model) {
  return config.size() == model.size() &&
         std::equal(config.begin(), config.end(), model.begin(),
                    [](std::int64_t a, std::int64_t b) { return a == b || a == -1 || b == -1; });
}

const ModelSignature::Tensor* find_tensor(const std::vector<ModelSignature::Tensor>& tensors,
                                          const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<Ok> check_tensor(const ModelConfig& config, const TensorConfig& tensor,
                        const std::vector<ModelSignature::Tensor>& of_model,
                        std::string_view role) {
  const ModelSignature::Tensor* declared = find_tensor(of_model, tensor.name);
  if (declared == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : of_model) {
      names.push_back(known.name);
    }
    return bad(fmt::format("the model has no {} '{}'; it has {}", role, tensor.name,
                           fmt::join(names, ", ")));
  }
  if (tensor.datatype != declared->datatype) {
    return bad(fmt::format("{} '{}' is {} in the configuration and {} in the model", role,
                           tensor.name, config_name(tensor.datatype),
                           config_name(declared->datatype)));
  }
  const Shape shape = backend_shape(config, tensor);
  if (!compatible(shape, declared->shape)) {
    return bad(fmt::format("{} '{}' has shape {} by the configuration and {} by the model", role,
                           tensor.name, shape_text(shape), shape_text(declared->shape)));
  }
  return Ok{};
}

}  // namespace

Shape backend_shape(const ModelConfig& config, const TensorConfig& tensor) {
  Shape shape;
  if (config.max_batch_size > 0) {
    shape.push_back(-1);
  }
  const Shape& dims = tensor.backend_dims();
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

bool is_filled_by_scheduler(const ModelConfig& config, const std::string& input) {
  if (!config.sequence_batching) {
    return false;
  }
  const SequenceBatching& sequences = *config.sequence_batching;
  return std::any_of(sequences.controls.begin(), sequences.controls.end(),
                     [&](const auto& control) { return control.input_name == input; }) ||
         std::any_of(sequences.states.begin(), sequences.states.end(),
                     [&](const auto& state) { return state.input_name == input; });
}

Result<Ok> check_config(const ModelConfig& config) {
  if (config.max_batch_size < 0) {
    return bad(fmt::format("max_batch_size {} is negative", config.max_batch_size));
  }
  SEPTET_TRY(check_tensors(config.inputs, "input"));
  SEPTET_TRY(check_tensors(config.outputs, "output"));
  SEPTET_TRY(check_batching(config));
  for (const WarmupSample& sample : config.warmup) {
    if (static_cast<int>(sample.batch_size) > std::max(config.max_batch_size, 1)) {
      return bad(fmt::format("model_warmup '{}' has batch_size {}, max_batch_size is {}",
                             sample.name, sample.batch_size, config.max_batch_size));
    }
  }
  if (config.response_cache && config.decoupled) {
    return bad("response_cache cannot be used with a decoupled model");
  }
  return Ok{};
}

Result<Ok> check_against_model(const ModelConfig& config, const ModelSignature& signature) {
  for (const TensorConfig& input : config.inputs) {
    SEPTET_TRY(check_tensor(config, input, signature.inputs, "input"));
  }
  for (const TensorConfig& output : config.outputs) {
    SEPTET_TRY(check_tensor(config, output, signature.outputs, "output"));
  }
  for (const ModelSignature::Tensor& input : signature.inputs) {
    if (config.find_input(input.name) == nullptr && !is_filled_by_scheduler(config, input.name)) {
      return bad(fmt::format("the model needs the input '{}', which is not listed", input.name));
    }
  }
  return Ok{};
}

}  // namespace septet::inference
