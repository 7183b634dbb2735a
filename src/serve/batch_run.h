// How the requests of a batch become one run of the engine, and its outputs their responses.
//
//   request A [2,16] \                      / response A: first 2 of the batch
//   request B [1,16] --> inputs [3,16] --> outputs [3,...] --> response B: the last one
//
// A single request's inputs are handed on in place; those of several are copied together into
// memory that the instance keeps. Outputs are never copied: each response views its part.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "serve/backend.h"
#include "serve/classification.h"

namespace septet::serve {

// What splitting a batch needs to know of a model version.
struct ModelFacts {
  ModelConfig config{};
  std::string version{};
  std::map<std::string, Labels> labels{};        // by output name
  std::map<std::string, Blob> initial_states{};  // by the name of a state's input; absent = zeros
};

struct BatchMember {
  const inference::InferRequest* request = nullptr;
  int batch_size = 1;
};

// Inputs of the batch in the order of the configuration.
class BatchInputs {
 public:
  // kInvalidArgument when the members cannot be put together (they differ in shape or type).
  Outcome<Ok> gather(const ModelConfig& config, std::span<const BatchMember> members);
  std::span<const TensorView> tensors() const { return tensors_; }
  // For inputs that come from elsewhere: the sequence scheduler's.
  std::vector<TensorView>& tensors_to_extend() { return tensors_; }

 private:
  Outcome<Ok> gather_input(const ModelConfig& config, const inference::TensorConfig& known,
                           std::span<const BatchMember> members, int total);

  std::vector<TensorView> tensors_;
  std::map<std::string, std::vector<std::byte>> joined_;  // kept between batches
};

// The outputs that the members ask for together, in the order of the configuration.
std::vector<std::string> wanted_outputs(const ModelConfig& config,
                                        std::span<const BatchMember> members);

// One response per member, in order.
std::vector<Outcome<inference::InferResponse>> split_outputs(
    const ModelFacts& facts, std::span<const BatchMember> members,
    const std::vector<OutputTensor>& outputs);

}  // namespace septet::serve
