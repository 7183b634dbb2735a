// Between the gRPC messages of an inference and the words of tensor.h (inference protocol, 2.1).
//
// Raw tensors are read in place: a request's blobs view into the message, which must outlive them.
#pragma once

#include <vector>

#include "inference/tensor.h"

namespace inference {
class ModelInferRequest;
class ModelInferResponse;
class InferParameter;
}  // namespace inference

namespace septet::inference {

// kInvalidArgument when raw and typed contents are mixed, do not match the inputs, or a parameter
// has the wrong type.
[[nodiscard]] Outcome<InferRequest> from_message(const ::inference::ModelInferRequest& message);
// The same of a message whose raw tensors lie elsewhere.
[[nodiscard]] Outcome<InferRequest> from_message(const ::inference::ModelInferRequest& message,
                                                 const std::vector<Blob>& raw_tensors);
// All outputs raw, an empty entry for one in shared memory.
void to_message(const InferResponse& response, ::inference::ModelInferResponse& message);

// For clients: all inputs raw.
void to_message(const InferRequest& request, ::inference::ModelInferRequest& message);
// The response's blobs view into the message.
[[nodiscard]] Outcome<InferResponse> from_message(const ::inference::ModelInferResponse& message);

}  // namespace septet::inference
