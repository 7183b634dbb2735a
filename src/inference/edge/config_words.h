// From the protobuf message to ModelConfig; private to this folder.
#pragma once

#include "inference/edge/proto/model_config.pb.h"
#include "inference/model_config.h"

namespace septet::inference {

ModelConfig config_words(const ::inference::ModelConfig& message);

}  // namespace septet::inference
