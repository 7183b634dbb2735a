#include "serve/edge/served_model.h"

#include <fmt/format.h>

namespace septet::serve {

ServedModel::ServedModel(inference::ConfigDocument document, std::int64_t version, SideFiles side,
                         std::unique_ptr<BackendModel> backend_model,
                         std::vector<std::unique_ptr<ModelInstance>> instances,
                         RateGate::Places places)
    : document_(std::move(document)),
      version_number_(version),
      facts_{document_.words(), fmt::to_string(version), std::move(side.labels),
             std::move(side.initial_states)},
      backend_model_(std::move(backend_model)),
      scheduler_(facts_, std::move(instances), std::move(places)) {}

}  // namespace septet::serve
