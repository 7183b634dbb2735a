#include "serve/sequence_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace septet::serve {

using inference::InferRequest;
using inference::SequenceControl;
using inference::SequenceState;

namespace {

template <typename T>
void append(std::vector<std::byte>& to, T value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof(T));
  std::memcpy(to.data() + at, &value, sizeof(T));
}

bool append_flag(std::vector<std::byte>& to, const SequenceControl& control, bool set) {
  const double value = set ? control.true_value : control.false_value;
  if (control.datatype == Datatype::kInt32) {
    append(to, static_cast<std::int32_t>(value));
  } else if (control.datatype == Datatype::kFp32) {
    append(to, static_cast<float>(value));
  } else if (control.datatype == Datatype::kBool) {
    append(to, static_cast<std::uint8_t>(value != 0));
  } else {
    return false;
  }
  return true;
}

bool append_id(std::vector<std::byte>& to, Datatype datatype, const inference::SequenceId& id) {
  const auto* text = std::get_if<std::string>(&id);
  if (datatype == Datatype::kBytes) {
    inference::append_bytes_element(
        to, text != nullptr ? *text : fmt::to_string(std::get<std::uint64_t>(id)));
    return true;
  }
  // A text that is a number may stand for it: clients send either.
  const auto number =
      text == nullptr ? std::optional(std::get<std::uint64_t>(id)) : parse_uint(*text);
  if (!number) {
    return false;
  }
  if (datatype == Datatype::kUint64 || datatype == Datatype::kInt64) {
    append(to, *number);
    return true;
  }
  if (datatype == Datatype::kUint32 || datatype == Datatype::kInt32) {
    append(to, static_cast<std::uint32_t>(*number));
    return *number <= UINT32_MAX;
  }
  return false;
}

bool append_control(std::vector<std::byte>& to, const SequenceControl& control,
                    const InferRequest& request) {
  switch (control.kind) {
    case SequenceControl::Kind::kStart:
      return append_flag(to, control, request.sequence_start);
    case SequenceControl::Kind::kReady:
      return append_flag(to, control, true);
    case SequenceControl::Kind::kEnd:
      return append_flag(to, control, request.sequence_end);
    case SequenceControl::Kind::kCorrelationId:
      return append_id(to, control.datatype, request.sequence_id);
  }
  return false;
}

std::uint64_t state_bytes(const SequenceState& state) {
  return inference::byte_size(state.datatype, state.dims).value_or(0);
}

// What the sequence's last request left, else the file's bytes, else zeros.
void append_state(std::vector<std::byte>& to, const ModelFacts& facts, const SequenceState& state,
                  const SequenceStates& kept) {
  for (const SequenceStates* source : {&kept, &facts.initial_states}) {
    if (const auto found = source->find(state.input_name); found != source->end()) {
      to.insert(to.end(), found->second.bytes.begin(), found->second.bytes.end());
      return;
    }
  }
  to.resize(to.size() + state_bytes(state));
}

}  // namespace

Outcome<Ok> SequenceInputs::add(const ModelFacts& facts, std::span<const BatchMember> members,
                                std::span<SequenceStates* const> states,
                                std::vector<TensorView>& inputs) {
  const ModelConfig& config = facts.config;
  memory_.clear();
  memory_.reserve(config.sequence_batching->controls.size() +
                  config.sequence_batching->states.size());
  const auto batch = static_cast<std::int64_t>(members.size());
  for (const SequenceControl& control : config.sequence_batching->controls) {
    std::vector<std::byte>& bytes = memory_.emplace_back();
    for (const BatchMember& member : members) {
      if (!append_control(bytes, control, *member.request)) {
        return inference::invalid_argument(
            fmt::format("sequence control '{}' of model '{}' cannot hold this request's value",
                        control.input_name, config.name));
      }
    }
    const Shape shape = config.max_batch_size > 0 ? Shape{batch, 1} : Shape{1};
    inputs.push_back({control.input_name, control.datatype, shape, bytes});
  }
  for (const SequenceState& state : config.sequence_batching->states) {
    std::vector<std::byte>& bytes = memory_.emplace_back();
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i].request->sequence_start) {
        states[i]->erase(state.input_name);
      }
      append_state(bytes, facts, state, *states[i]);
    }
    Shape shape = state.dims;
    if (config.max_batch_size > 0) {
      shape.insert(shape.begin(), batch);
    }
    inputs.push_back({state.input_name, state.datatype, shape, bytes});
  }
  return Ok{};
}

void add_state_outputs(const ModelConfig& config, std::vector<std::string>& wanted) {
  for (const SequenceState& state : config.sequence_batching->states) {
    if (std::find(wanted.begin(), wanted.end(), state.output_name) == wanted.end()) {
      wanted.push_back(state.output_name);
    }
  }
}

Outcome<Ok> keep_states(const ModelConfig& config, std::span<const BatchMember> members,
                        std::span<SequenceStates* const> states,
                        const std::vector<OutputTensor>& outputs) {
  for (const SequenceState& state : config.sequence_batching->states) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(),
                     [&](const OutputTensor& output) { return output.name == state.output_name; });
    const std::uint64_t each = state_bytes(state);
    if (found == outputs.end() || found->data.size() != each * members.size()) {
      return inference::internal_error(fmt::format(
          "model '{}' gave no state '{}' of the configured shape", config.name, state.output_name));
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto part = found->data.bytes.subspan(i * each, each);
      (*states[i])[state.input_name] =
          inference::own_bytes(std::vector<std::byte>(part.begin(), part.end()));
    }
  }
  return Ok{};
}

}  // namespace septet::serve
