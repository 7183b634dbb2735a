// ServedModel: one version of one model, loaded and running.
//
// Made by the control thread, shared by whoever has a request for it. Its scheduler is drained by
// the control thread before the last reference goes.
#pragma once

#include <memory>
#include <string>

#include "inference/edge/config_document.h"
#include "serve/backend.h"
#include "serve/edge/model_files.h"
#include "serve/edge/model_scheduler.h"

namespace septet::serve {

class ServedModel {
 public:
  // document is complete.
  ServedModel(inference::ConfigDocument document, std::int64_t version, SideFiles side,
              std::unique_ptr<BackendModel> backend_model,
              std::vector<std::unique_ptr<ModelInstance>> instances, RateGate::Places places = {});
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  const ModelConfig& config() const { return facts_.config; }
  const inference::ConfigDocument& document() const { return document_; }
  const ModelFacts& facts() const { return facts_; }
  const std::string& version() const { return facts_.version; }
  std::int64_t version_number() const { return version_number_; }
  ModelScheduler& scheduler() { return scheduler_; }
  const ModelScheduler& scheduler() const { return scheduler_; }

 private:
  inference::ConfigDocument document_;
  std::int64_t version_number_;
  ModelFacts facts_;
  std::unique_ptr<BackendModel> backend_model_;  // outlives the scheduler's instances
  ModelScheduler scheduler_;
};

}  // namespace septet::serve
