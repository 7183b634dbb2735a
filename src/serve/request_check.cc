#include "serve/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "inference/config_check.h"

namespace septet::serve {

using inference::Datatype;
using inference::InferRequest;
using inference::InputTensor;
using inference::invalid_argument;
using inference::ModelConfig;
using inference::Outcome;
using inference::Shape;
using inference::TensorConfig;

namespace {

bool matches(const Shape& expected, const Shape& got) {
  return expected.size() == got.size() && std::equal(expected.begin(), expected.end(), got.begin(),
                                                     [](std::int64_t want, std::int64_t have) {
                                                       return want == -1 || want == have;
                                                     });
}

Outcome<Ok> check_bytes(const InputTensor& input, const std::string& model) {
  const std::optional<std::uint64_t> elements = inference::element_count(input.shape);
  if (input.datatype == Datatype::kBytes) {
    const auto found = inference::count_bytes_elements(input.data.bytes);
    if (!found) {
      return invalid_argument(fmt::format(
          "incomplete string data for inference input '{}' for model '{}'", input.name, model));
    }
    if (!elements || *found != *elements) {
      return invalid_argument(
          fmt::format("unexpected number of string elements {} for inference input '{}' for model "
                      "'{}', expecting {}",
                      *found, input.name, model, elements.value_or(0)));
    }
    return Ok{};
  }
  const auto expected = inference::byte_size(input.datatype, input.shape);
  if (!expected || *expected != input.data.size()) {
    return invalid_argument(fmt::format(
        "input byte size mismatch for input '{}' for model '{}'. Expected {}, got {}", input.name,
        model, expected ? fmt::to_string(*expected) : "another shape", input.data.size()));
  }
  return Ok{};
}

Outcome<Ok> check_input(const ModelConfig& config, const InputTensor& input) {
  const TensorConfig* expected = config.find_input(input.name);
  if (expected == nullptr) {
    return invalid_argument(
        fmt::format("unexpected inference input '{}' for model '{}'", input.name, config.name));
  }
  if (input.datatype != expected->datatype) {
    return invalid_argument(fmt::format(
        "inference input '{}' data-type is '{}', model expects '{}' for '{}'", input.name,
        wire_name(input.datatype), wire_name(expected->datatype), config.name));
  }
  const Shape wanted = client_shape(config, *expected);
  if (!matches(wanted, input.shape)) {
    return invalid_argument(fmt::format(
        "unexpected shape for input '{}' for model '{}'. Expected {}, got {}", input.name,
        config.name, inference::shape_text(wanted), inference::shape_text(input.shape)));
  }
  return check_bytes(input, config.name);
}

// Every input once, none missing that is not optional.
Outcome<Ok> check_inputs(const ModelConfig& config, const InferRequest& request) {
  std::set<std::string_view> given;
  for (const InputTensor& input : request.inputs) {
    if (!given.insert(input.name).second) {
      return invalid_argument(fmt::format("input '{}' already exists in request", input.name));
    }
  }
  const auto required = std::count_if(config.inputs.begin(), config.inputs.end(),
                                      [](const TensorConfig& input) { return !input.optional; });
  if (request.inputs.size() < static_cast<std::size_t>(required) ||
      request.inputs.size() > config.inputs.size()) {
    return invalid_argument(fmt::format("expected {} inputs but got {} inputs for model '{}'",
                                        config.inputs.size(), request.inputs.size(), config.name));
  }
  for (const InputTensor& input : request.inputs) {
    SEPTET_TRY(check_input(config, input));
  }
  for (const TensorConfig& input : config.inputs) {
    if (!input.optional && !given.contains(input.name)) {
      return invalid_argument(
          fmt::format("expected input '{}' is missing for model '{}'", input.name, config.name));
    }
  }
  return Ok{};
}

Outcome<int> check_batch(const ModelConfig& config, const InferRequest& request) {
  if (config.max_batch_size == 0 || request.inputs.empty()) {
    return 1;
  }
  const std::int64_t batch = request.inputs.front().shape.front();
  for (const InputTensor& input : request.inputs) {
    if (input.shape.front() != batch) {
      return invalid_argument(fmt::format(
          "input '{}' batch size does not match other inputs for '{}'", input.name, config.name));
    }
  }
  if (batch < 1) {
    return invalid_argument(
        fmt::format("inference request batch-size must be >= 1 for '{}'", config.name));
  }
  if (batch > config.max_batch_size) {
    return invalid_argument(fmt::format("inference request batch-size must be <= {} for '{}'",
                                        config.max_batch_size, config.name));
  }
  return static_cast<int>(batch);
}

Outcome<Ok> check_outputs(const ModelConfig& config, const InferRequest& request) {
  std::set<std::string_view> asked;
  for (const auto& output : request.outputs) {
    const TensorConfig* known = config.find_output(output.name);
    if (known == nullptr) {
      return invalid_argument(
          fmt::format("unexpected inference output '{}' for model '{}'", output.name, config.name));
    }
    if (!asked.insert(output.name).second) {
      return invalid_argument(fmt::format("output '{}' is asked for twice", output.name));
    }
    if (output.classification > 0 &&
        (known->datatype == Datatype::kFp16 || known->datatype == Datatype::kBf16 ||
         known->datatype == Datatype::kBool || known->datatype == Datatype::kBytes)) {
      return invalid_argument(
          fmt::format("class result not available for output '{}' due to unsupported type '{}'",
                      output.name, wire_name(known->datatype)));
    }
  }
  return Ok{};
}

// FNV-1a over names and shapes without the batch dimension. Two shapes that collide meet again
// when the batch is put together, where the sizes are compared.
std::uint64_t shape_key(const ModelConfig& config, const InferRequest& request) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto mix = [&](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) {
      hash = (hash ^ (value >> (8 * i) & 0xFF)) * 1099511628211ULL;
    }
  };
  for (const TensorConfig& known : config.inputs) {
    for (const InputTensor& input : request.inputs) {
      if (input.name == known.name) {
        mix(input.shape.size());
        for (std::size_t i = config.max_batch_size > 0 ? 1 : 0; i < input.shape.size(); ++i) {
          mix(static_cast<std::uint64_t>(input.shape[i]));
        }
      }
    }
    mix(~std::uint64_t{0});
  }
  return hash;
}

// Replaces the dims behind the batch dimension. A free dimension of `to` takes the elements that
// the fixed ones leave.
Shape reshaped(const ModelConfig& config, const Shape& to, const Shape& from) {
  const std::size_t skip = config.max_batch_size > 0 && !from.empty() ? 1 : 0;
  Shape shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(skip));
  const std::span<const std::int64_t> rest(from.begin() + static_cast<std::ptrdiff_t>(skip),
                                           from.end());
  std::int64_t left = static_cast<std::int64_t>(inference::element_count(rest).value_or(0));
  for (const std::int64_t dimension : to) {
    left = dimension > 0 ? left / dimension : left;
  }
  for (const std::int64_t dimension : to) {
    shape.push_back(dimension == -1 ? left : dimension);
  }
  return shape;
}

}  // namespace

Shape client_shape(const ModelConfig& config, const TensorConfig& tensor) {
  Shape shape;
  if (config.max_batch_size > 0) {
    shape.push_back(-1);
  }
  shape.insert(shape.end(), tensor.dims.begin(), tensor.dims.end());
  return shape;
}

Shape shape_for_backend(const ModelConfig& config, const TensorConfig& tensor,
                        const Shape& from_client) {
  return tensor.reshape ? reshaped(config, *tensor.reshape, from_client) : from_client;
}

Shape shape_for_client(const ModelConfig& config, const TensorConfig& tensor,
                       const Shape& from_backend) {
  return tensor.reshape ? reshaped(config, tensor.dims, from_backend) : from_backend;
}

Outcome<CheckedRequest> check_request(const ModelConfig& config, const InferRequest& request) {
  SEPTET_TRY(check_inputs(config, request));
  const Outcome<int> batch = check_batch(config, request);
  if (!batch.ok()) {
    return batch.error();
  }
  SEPTET_TRY(check_outputs(config, request));
  return CheckedRequest{*batch, shape_key(config, request)};
}

Outcome<InferRequest> raw_request(const ModelConfig& config, inference::Blob body) {
  if (config.inputs.size() != 1) {
    return invalid_argument(
        fmt::format("Raw request must only have 1 input (found {}) to be deduced but got {} "
                    "inputs in '{}' model configuration",
                    config.inputs.size(), config.inputs.size(), config.name));
  }
  const TensorConfig& known = config.inputs.front();
  InputTensor input{.name = known.name, .datatype = known.datatype};
  if (config.max_batch_size > 0) {
    input.shape.push_back(1);
  }
  if (known.datatype == Datatype::kBytes) {
    if (known.dims != Shape{1}) {
      return invalid_argument(fmt::format(
          "For BYTES datatype raw input '{}', the model must have input shape [1]", known.name));
    }
    std::vector<std::byte> element;
    inference::append_bytes_element(element, body.text());
    input.data = inference::own_bytes(std::move(element));
    input.shape.push_back(1);
  } else {
    const auto free = std::count(known.dims.begin(), known.dims.end(), -1);
    if (free > 1) {
      return invalid_argument(fmt::format(
          "The shape of the raw input '{}' can not be deduced because there are more than one "
          "variable-sized dimension",
          known.name));
    }
    auto left = static_cast<std::int64_t>(body.size() / inference::element_size(known.datatype));
    for (const std::int64_t dimension : known.dims) {
      left = dimension > 0 ? left / dimension : left;
    }
    for (const std::int64_t dimension : known.dims) {
      input.shape.push_back(dimension == -1 ? left : dimension);
    }
    input.data = std::move(body);
  }
  InferRequest request;
  request.binary_outputs = true;
  request.inputs.push_back(std::move(input));
  return request;
}

std::string request_prefix(const InferRequest& request) {
  return fmt::format("[request id: {}] ", request.id.empty() ? "<id_unknown>" : request.id);
}

}  // namespace septet::serve
