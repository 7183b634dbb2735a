#include "serve/edge/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace septet::serve {

using inference::EnsembleStep;
using inference::InferRequest;
using inference::InferResponse;

Result<Ok> check_ensemble(const ModelConfig& config) {
  std::set<std::string> produced;
  for (const auto& input : config.inputs) {
    produced.insert(input.name);
  }
  const auto bad = [&](std::string why) {
    return make_error(ErrorKind::kUsage, fmt::format("ensemble '{}': {}", config.name, why));
  };
  for (const EnsembleStep& step : config.ensemble_steps) {
    if (step.model_name.empty() || step.model_name == config.name) {
      return bad(fmt::format("a step names the model '{}'", step.model_name));
    }
    for (const auto& [output, tensor] : step.output_map) {
      if (!produced.insert(tensor).second) {
        return bad(fmt::format("tensor '{}' has more than one producer", tensor));
      }
    }
  }
  // Steps that can never start: a tensor that nothing produces, or a circle.
  std::set<std::string> available;
  for (const auto& input : config.inputs) {
    available.insert(input.name);
  }
  std::vector<const EnsembleStep*> left;
  for (const EnsembleStep& step : config.ensemble_steps) {
    left.push_back(&step);
  }
  for (bool progress = true; progress;) {
    progress = std::erase_if(left, [&](const EnsembleStep* step) {
                 const bool ready =
                     std::all_of(step->input_map.begin(), step->input_map.end(),
                                 [&](const auto& map) { return available.contains(map.second); });
                 for (const auto& [output, tensor] : step->output_map) {
                   if (ready) {
                     available.insert(tensor);
                   }
                 }
                 return ready;
               }) > 0;
  }
  if (!left.empty()) {
    return bad(
        fmt::format("the step of model '{}' can never start: one of its inputs is never "
                    "produced",
                    left.front()->model_name));
  }
  for (const auto& output : config.outputs) {
    if (!available.contains(output.name)) {
      return bad(fmt::format("no step produces the output '{}'", output.name));
    }
  }
  return Ok{};
}

EnsembleRun::EnsembleRun(const ModelFacts& facts, std::shared_ptr<const void> owner,
                         InferRequest request, int batch_size, InferStep infer, InferDone done)
    : facts_(facts),
      owner_(std::move(owner)),
      request_(std::move(request)),
      batch_size_(batch_size),
      infer_(std::move(infer)),
      done_(std::move(done)),
      steps_(facts.config.ensemble_steps.size()),
      steps_left_(steps_.size()) {
  for (const inference::InputTensor& input : request_.inputs) {
    OutputTensor& tensor = tensors_[input.name];
    tensor.name = input.name;
    tensor.datatype = input.datatype;
    tensor.shape = input.shape;
    tensor.data = input.data;
  }
}

void EnsembleRun::start() { run_ready(); }

std::vector<std::size_t> EnsembleRun::take_ready() {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < steps_.size() && !failed_; ++i) {
    const EnsembleStep& step = facts_.config.ensemble_steps[i];
    if (!steps_[i].started &&
        std::all_of(step.input_map.begin(), step.input_map.end(),
                    [&](const auto& map) { return tensors_.contains(map.second); })) {
      steps_[i].started = true;
      ready.push_back(i);
    }
  }
  return ready;
}

InferRequest EnsembleRun::step_request(std::size_t index) const {
  const EnsembleStep& step = facts_.config.ensemble_steps[index];
  InferRequest request{.model_name = step.model_name};
  if (step.model_version > 0) {
    request.model_version = fmt::to_string(step.model_version);
  }
  request.id = request_.id;
  request.sequence_id = request_.sequence_id;
  request.sequence_start = request_.sequence_start;
  request.sequence_end = request_.sequence_end;
  request.priority = request_.priority;
  request.timeout_us = request_.timeout_us;
  request.parameters = request_.parameters;
  for (const auto& [input, tensor] : step.input_map) {
    const OutputTensor& value = tensors_.at(tensor);
    request.inputs.push_back(
        {.name = input, .datatype = value.datatype, .shape = value.shape, .data = value.data});
  }
  for (const auto& [output, tensor] : step.output_map) {
    request.outputs.push_back({.name = output, .binary = true});
  }
  return request;
}

void EnsembleRun::run_ready() {
  for (const std::size_t index : take_ready()) {
    InferRequest request;
    {
      const std::lock_guard lock(mutex_);
      request = step_request(index);
    }
    infer_(std::move(request), [self = shared_from_this(), index](Outcome<InferResponse> response) {
      self->step_done(index, std::move(response));
    });
  }
}

void EnsembleRun::step_done(std::size_t index, Outcome<InferResponse> response) {
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    --steps_left_;
    if (failed_) {
      return;
    }
    if (response.ok()) {
      const EnsembleStep& step = facts_.config.ensemble_steps[index];
      for (OutputTensor& output : response->outputs) {
        const std::string& tensor = step.output_map.at(output.name);
        output.name = tensor;
        tensors_[tensor] = std::move(output);
      }
      complete = steps_left_ == 0;
    } else {
      failed_ = true;
    }
  }
  if (!response.ok()) {
    done_(response.error());
  } else if (complete) {
    finish();
  } else {
    run_ready();
  }
}

void EnsembleRun::finish() {
  std::vector<OutputTensor> outputs;
  for (const auto& output : facts_.config.outputs) {
    outputs.push_back(tensors_.at(output.name));
  }
  const BatchMember member{&request_, batch_size_};
  std::vector<Outcome<InferResponse>> responses =
      split_outputs(facts_, std::span(&member, 1), outputs);
  done_(std::move(responses.front()));
}

}  // namespace septet::serve
