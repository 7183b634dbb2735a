// ModelDescription: what a client needs to know of a model to send it requests.
//
// Made from the server's metadata and configuration (edge/model_query.h). A value type.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "inference/datatype.h"

namespace septet::measure {

struct TensorDescription {
  std::string name;
  inference::Datatype datatype = inference::Datatype::kInvalid;
  inference::Shape shape;  // without the batch dimension; -1 = variable
  std::string format;      // "FORMAT_NCHW", "FORMAT_NHWC", "FORMAT_NONE" or empty
  bool optional = false;
  bool is_shape_tensor = false;
};

// A model that another one calls, and that has statistics of its own.
struct ModelPart {
  std::string name;
  std::string version;  // empty = the server's choice
  bool has_response_cache = false;
  auto operator<=>(const ModelPart&) const = default;
};

struct ModelDescription {
  std::string name;
  std::string version;  // the one that answers when none is named
  std::string platform;
  std::int64_t max_batch_size = 0;  // 0 = the model takes no batches
  std::vector<TensorDescription> inputs;
  std::vector<TensorDescription> outputs;
  bool is_sequence_model = false;
  bool is_decoupled = false;
  bool has_response_cache = false;
  std::vector<ModelPart> parts;  // of an ensemble: the models of its steps, each once
};

struct ServerDescription {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;

  bool has_extension(const std::string& extension) const;
};

}  // namespace septet::measure
