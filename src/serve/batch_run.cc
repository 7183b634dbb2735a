#include "serve/batch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "serve/request_check.h"

namespace septet::serve {

using inference::InferRequest;
using inference::InferResponse;
using inference::InputTensor;
using inference::OutputForm;
using inference::RequestedOutput;
using inference::TensorConfig;

namespace {

int total_batch(std::span<const BatchMember> members) {
  return std::accumulate(members.begin(), members.end(), 0, [](int sum, const BatchMember& member) {
    return sum + member.batch_size;
  });
}

const InputTensor* find_input(const InferRequest& request, const std::string& name) {
  const auto found = std::find_if(request.inputs.begin(), request.inputs.end(),
                                  [&](const InputTensor& input) { return input.name == name; });
  return found == request.inputs.end() ? nullptr : &*found;
}

bool same_but_for_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

// The bytes of the batch entries [first, first + count) of an output with `total` of them.
Outcome<Blob> slice(const OutputTensor& output, int first, int count, int total) {
  if (count == total) {
    return output.data;
  }
  const auto begin = static_cast<std::size_t>(first);
  const auto length = static_cast<std::size_t>(count);
  if (output.datatype != Datatype::kBytes) {
    const std::size_t each = output.data.size() / static_cast<std::size_t>(total);
    return Blob{output.data.bytes.subspan(begin * each, length * each), output.data.owner};
  }
  const auto elements = inference::split_bytes_elements(output.data.bytes);
  if (!elements) {
    return inference::internal_error(
        fmt::format("the backend's output '{}' holds a malformed BYTES element", output.name));
  }
  const std::size_t each = elements->size() / static_cast<std::size_t>(total);
  constexpr std::size_t kLengthBytes = 4;
  std::size_t from = 0;
  std::size_t to = 0;
  for (std::size_t i = 0; i < (begin + length) * each; ++i) {
    const std::size_t size = kLengthBytes + (*elements)[i].size();
    to += size;
    from += i < begin * each ? size : 0;
  }
  return Blob{output.data.bytes.subspan(from, to - from), output.data.owner};
}

// Walks one member's outputs out of the batch's.
class Splitter {
 public:
  Splitter(const ModelFacts& facts, const std::vector<OutputTensor>& outputs, int total)
      : facts_(facts), outputs_(outputs), total_(total) {}

  Outcome<InferResponse> response(const BatchMember& member, int first) const {
    InferResponse response{.model_name = facts_.config.name,
                           .model_version = facts_.version,
                           .id = member.request->id};
    if (!member.request->outputs.empty()) {
      for (const RequestedOutput& wanted : member.request->outputs) {
        SEPTET_TRY(add(response, wanted, member, first));
      }
      return response;
    }
    for (const TensorConfig& known : facts_.config.outputs) {
      const RequestedOutput wanted{.name = known.name, .binary = member.request->binary_outputs};
      SEPTET_TRY(add(response, wanted, member, first));
    }
    return response;
  }

 private:
  Outcome<Ok> add(InferResponse& response, const RequestedOutput& wanted, const BatchMember& member,
                  int first) const {
    const auto found =
        std::find_if(outputs_.begin(), outputs_.end(),
                     [&](const OutputTensor& output) { return output.name == wanted.name; });
    const TensorConfig* known = facts_.config.find_output(wanted.name);
    if (found == outputs_.end() || known == nullptr) {
      return inference::internal_error(fmt::format("the backend gave no output '{}'", wanted.name));
    }
    auto data = slice(*found, first, member.batch_size, total_);
    SEPTET_TRY(data);
    OutputTensor output{.name = wanted.name, .datatype = found->datatype};
    output.data = std::move(*data);
    output.shape = found->shape;
    if (facts_.config.max_batch_size > 0) {
      output.shape.front() = member.batch_size;
    }
    output.shape = shape_for_client(facts_.config, *known, output.shape);
    output.form = wanted.binary ? OutputForm::kBinary : OutputForm::kJson;
    if (wanted.shared) {
      output.form = OutputForm::kSharedMemory;
      output.shared = wanted.shared;
    }
    if (wanted.classification > 0) {
      SEPTET_TRY(classify(output, wanted.classification));
    }
    response.outputs.push_back(std::move(output));
    return Ok{};
  }

  Outcome<Ok> classify(OutputTensor& output, std::uint32_t k) const {
    static const Labels kNone;
    const auto labels = facts_.labels.find(output.name);
    auto strings = classify_output(output, k, facts_.config.max_batch_size > 0,
                                   labels == facts_.labels.end() ? kNone : labels->second);
    SEPTET_TRY(strings);
    output = std::move(*strings);
    return Ok{};
  }

  const ModelFacts& facts_;
  const std::vector<OutputTensor>& outputs_;
  int total_;
};

}  // namespace

Outcome<Ok> BatchInputs::gather(const ModelConfig& config, std::span<const BatchMember> members) {
  tensors_.clear();
  const int total = total_batch(members);
  for (const TensorConfig& known : config.inputs) {
    SEPTET_TRY(gather_input(config, known, members, total));
  }
  return Ok{};
}

Outcome<Ok> BatchInputs::gather_input(const ModelConfig& config, const TensorConfig& known,
                                      std::span<const BatchMember> members, int total) {
  const InputTensor* first = find_input(*members.front().request, known.name);
  if (first == nullptr) {
    return Ok{};  // optional, and left out by all: they have the same shape key
  }
  TensorView view{known.name, first->datatype, shape_for_backend(config, known, first->shape),
                  first->data.bytes};
  if (members.size() > 1) {
    std::vector<std::byte>& joined = joined_[known.name];
    joined.clear();
    for (const BatchMember& member : members) {
      const InputTensor* input = find_input(*member.request, known.name);
      if (input == nullptr || !same_but_for_batch(input->shape, first->shape)) {
        return inference::internal_error(
            fmt::format("requests of different shapes met in one batch of '{}'", config.name));
      }
      joined.insert(joined.end(), input->data.bytes.begin(), input->data.bytes.end());
    }
    view.bytes = joined;
    view.shape.front() = total;
  }
  tensors_.push_back(std::move(view));
  return Ok{};
}

std::vector<std::string> wanted_outputs(const ModelConfig& config,
                                        std::span<const BatchMember> members) {
  std::vector<std::string> wanted;
  for (const TensorConfig& output : config.outputs) {
    const bool asked = std::any_of(members.begin(), members.end(), [&](const BatchMember& member) {
      const std::vector<RequestedOutput>& outputs = member.request->outputs;
      return outputs.empty() ||
             std::any_of(outputs.begin(), outputs.end(), [&](const RequestedOutput& requested) {
               return requested.name == output.name;
             });
    });
    if (asked) {
      wanted.push_back(output.name);
    }
  }
  return wanted;
}

std::vector<Outcome<InferResponse>> split_outputs(const ModelFacts& facts,
                                                  std::span<const BatchMember> members,
                                                  const std::vector<OutputTensor>& outputs) {
  const int total = total_batch(members);
  std::vector<Outcome<InferResponse>> responses;
  responses.reserve(members.size());
  for (const OutputTensor& output : outputs) {
    if (facts.config.max_batch_size > 0 &&
        (output.shape.empty() || output.shape.front() != total)) {
      const Status status = inference::internal_error(
          fmt::format("output '{}' of '{}' has shape {} for a batch of {}", output.name,
                      facts.config.name, inference::shape_text(output.shape), total));
      responses.assign(members.size(), status);
      return responses;
    }
  }
  const Splitter splitter(facts, outputs, total);
  int first = 0;
  for (const BatchMember& member : members) {
    responses.push_back(splitter.response(member, first));
    first += member.batch_size;
  }
  return responses;
}

}  // namespace septet::serve
