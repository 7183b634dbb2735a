// The inputs that the sequence scheduler adds to a batch, and the states it carries from one
// request of a sequence to the next.
//
//   members [a, b]  -->  START [2,1], END [2,1], CORRID [2,1], state inputs [2,...]
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "serve/batch_run.h"

namespace septet::serve {

// A sequence's states by the name of the input that they feed; empty before its first request.
using SequenceStates = std::map<std::string, Blob>;

class SequenceInputs {
 public:
  // Appends to inputs. states: one per member, in order. The tensors view into this object until
  // the next call. kInvalidArgument when a correlation id does not fit its input's type.
  [[nodiscard]] Outcome<Ok> add(const ModelFacts& facts, std::span<const BatchMember> members,
                                std::span<SequenceStates* const> states,
                                std::vector<TensorView>& inputs);

 private:
  std::vector<std::vector<std::byte>> memory_;
};

// The outputs that become states, to be asked for beside what the requests want.
void add_state_outputs(const ModelConfig& config, std::vector<std::string>& wanted);

// Keeps each member's part of the state outputs. kInternal when one is missing or misshapen.
[[nodiscard]] Outcome<Ok> keep_states(const ModelConfig& config,
                                      std::span<const BatchMember> members,
                                      std::span<SequenceStates* const> states,
                                      const std::vector<OutputTensor>& outputs);

}  // namespace septet::serve
