// Builds the one request that a load generator repeats: random or zero data for every input.
//
// Pure: the randomness is seeded, so the same options give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "inference/tensor.h"
#include "measure/model_description.h"

namespace septet::measure {

enum class InputKind { kRandom, kZero };

// How HTTP carries tensors: as bytes behind the JSON, or as numbers and strings in it.
enum class TensorFormat { kBinary, kJson };

// What every request carries. Built once; the same bytes are sent each time, as perf_analyzer does.
struct InputOptions {
  InputKind kind = InputKind::kRandom;
  int batch_size = 1;
  std::map<std::string, std::vector<std::int64_t>> shapes;  // for inputs with variable dimensions
  std::size_t string_length = 128;                          // of each element of a BYTES input
  std::string string_data;                                  // non-empty: every BYTES element
  std::uint64_t seed = 1;
  inference::Parameters parameters;                    // of every request, for the model's backend
  TensorFormat input_format = TensorFormat::kBinary;   // gRPC sends bytes in any case
  TensorFormat output_format = TensorFormat::kBinary;  // asked for
};

// The requests of a load: streams of steps. A sequence model plays each stream as one sequence; for
// other models all steps of all streams are sent in turn.
using RequestStreams = std::vector<std::vector<inference::InferRequest>>;

// What an answer must hold, byte for byte, by the output's name; empty = it is not looked at.
using ExpectedOutputs = std::map<std::string, std::vector<std::byte>>;

struct InputData {
  RequestStreams requests;
  std::vector<std::vector<ExpectedOutputs>> expected{};  // of each request; empty = of none
};

// The shape to send for an input: the model's own, its variable dimensions from the options (or
// from `given`, which stands in the data); without the batch dimension.
Result<inference::Shape> input_shape(const ModelDescription& model, const TensorDescription& input,
                                     const InputOptions& options,
                                     const inference::Shape* given = nullptr);

// A request without inputs: the model's name and every output asked for as binary.
inference::InferRequest empty_request(const ModelDescription& model);

// Whether the model takes this batch size.
Result<Ok> check_batch(const ModelDescription& model, int batch_size);

// The request: every input that is not optional, with data; every output asked for as binary.
// Errors (kUsage): a batch size that the model does not take, a variable dimension without a shape,
// a shape that the model does not take, a shape for an input that does not exist, an input of a
// type that cannot be made up.
Result<inference::InferRequest> build_request(const ModelDescription& model,
                                              const InputOptions& options);

}  // namespace septet::measure
