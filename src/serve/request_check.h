// Whether a request fits the model: the protocol's checks before anything is queued.
//
// Pure. The messages are Triton's (inference protocol, 1.7); the caller puts "[request id: X] "
// in front.
#pragma once

#include <cstdint>

#include "inference/model_config.h"
#include "inference/tensor.h"

namespace septet::serve {

struct CheckedRequest {
  int batch_size = 1;           // 1 for a model without batch dimension
  std::uint64_t shape_key = 0;  // equal for requests whose inputs have the same shapes
};

// Shared memory ranges are resolved before: every input's data is there.
[[nodiscard]] inference::Outcome<CheckedRequest> check_request(
    const inference::ModelConfig& config, const inference::InferRequest& request);

// What the configuration's dims look like to clients: -1 in front when the model batches.
inference::Shape client_shape(const inference::ModelConfig& config,
                              const inference::TensorConfig& tensor);

// The shape an input has for the backend: the reshape applied, a free dimension taken over.
inference::Shape shape_for_backend(const inference::ModelConfig& config,
                                   const inference::TensorConfig& tensor,
                                   const inference::Shape& from_client);
// The other direction, for an output.
inference::Shape shape_for_client(const inference::ModelConfig& config,
                                  const inference::TensorConfig& tensor,
                                  const inference::Shape& from_backend);

// The request that a raw body means: all of it is the model's only input, all outputs come back
// binary. kInvalidArgument when the model has several inputs or more than one free dimension.
[[nodiscard]] inference::Outcome<inference::InferRequest> raw_request(
    const inference::ModelConfig& config, inference::Blob body);

// "[request id: X] ", "<id_unknown>" when there is no id.
std::string request_prefix(const inference::InferRequest& request);

}  // namespace septet::serve
