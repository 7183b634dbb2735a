// Warm-up: the samples of model_warmup, run on an instance before its model counts as ready.
#pragma once

#include "serve/backend.h"
#include "serve/edge/model_files.h"

namespace septet::serve {

// Runs each sample as often as it says. The error names the sample. Random data is seeded, so that
// two starts do the same.
[[nodiscard]] Result<Ok> warm_up(const ModelFiles& files, const ModelConfig& config,
                                 ModelInstance& instance);

}  // namespace septet::serve
