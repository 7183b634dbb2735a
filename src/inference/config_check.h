// Whether a model's configuration makes sense, by itself and against the model.
//
// Pure checks; the message names the field and what is wrong with it, the caller adds the file.
#pragma once

#include "base/result.h"
#include "inference/model_config.h"

namespace septet::inference {

// The largest batch that auto-completion allows a model with a free first dimension.
inline constexpr int kAutoBatchSize = 4;

// kUsage when the fields contradict each other or a value is out of range.
[[nodiscard]] Result<Ok> check_config(const ModelConfig& config);

// kUsage when the configuration names a tensor that the model lacks, leaves out an input that the
// model needs, or disagrees in type or shape.
[[nodiscard]] Result<Ok> check_against_model(const ModelConfig& config,
                                             const ModelSignature& signature);

// The shape the backend sees: the batch dimension (-1 when the model has one), then the dims.
Shape backend_shape(const ModelConfig& config, const TensorConfig& tensor);

// Whether the sequence scheduler fills this input in, so that no request may and none must.
bool is_filled_by_scheduler(const ModelConfig& config, const std::string& input);

}  // namespace septet::inference
