// Tensors, infer requests and responses as values: what HTTP, gRPC and shared memory all become.
//
// Data is never owned here by copying: a Blob is a view plus whatever keeps the viewed bytes alive
// (a request buffer, a mapped region, an engine's output). Elements lie little-endian, row-major;
// a BYTES element is a u32 little-endian length and that many bytes (inference protocol, 1.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "inference/datatype.h"
#include "inference/status.h"

namespace septet::inference {

struct Blob {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> owner{};  // null when the bytes live longer than the Blob by contract

  std::size_t size() const { return bytes.size(); }
  std::string_view text() const;  // the bytes as characters
};

// A Blob that owns these bytes.
Blob own_bytes(std::vector<std::byte> bytes);
Blob own_text(std::string text);

using ParameterValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
using Parameters = std::map<std::string, ParameterValue, std::less<>>;

// A range inside a registered shared memory region.
struct SharedMemoryRange {
  std::string region{};
  std::uint64_t offset = 0;
  std::uint64_t byte_size = 0;

  bool operator==(const SharedMemoryRange&) const = default;
};

struct InputTensor {
  std::string name{};
  Datatype datatype = Datatype::kInvalid;
  Shape shape{};
  Blob data{};                                // empty until a shared memory range is resolved
  std::optional<SharedMemoryRange> shared{};  // the data lies in a region
  Parameters parameters{};                    // without the protocol's own
};

struct RequestedOutput {
  std::string name{};
  bool binary = false;                        // HTTP: as bytes behind the JSON
  std::uint32_t classification = 0;           // k of the top-k strings; 0 = the tensor itself
  std::optional<SharedMemoryRange> shared{};  // written there instead of answered
  Parameters parameters{};                    // without the protocol's own
};

// A sequence is named by a number or a string; 0 and "" are no sequence.
using SequenceId = std::variant<std::uint64_t, std::string>;

struct InferRequest {
  std::string model_name{};
  std::string model_version{};  // empty = the model's version policy decides
  std::string id{};
  SequenceId sequence_id{std::uint64_t{0}};
  bool sequence_start = false;
  bool sequence_end = false;
  std::uint64_t priority = 0;          // 0 = the model's default
  std::uint64_t timeout_us = 0;        // 0 = none
  bool final_response_wanted = false;  // triton_enable_empty_final_response
  Parameters parameters{};             // the others, for the backend
  std::vector<InputTensor> inputs{};
  std::vector<RequestedOutput> outputs{};  // empty = all
  bool binary_outputs = false;             // how outputs come back when none is listed

  bool in_sequence() const;
};

enum class OutputForm { kJson, kBinary, kSharedMemory };

struct OutputTensor {
  std::string name{};
  Datatype datatype = Datatype::kInvalid;
  Shape shape{};
  Blob data{};
  OutputForm form = OutputForm::kJson;
  std::optional<SharedMemoryRange> shared{};  // set with kSharedMemory
};

struct InferResponse {
  std::string model_name{};
  std::string model_version{};
  std::string id{};
  Parameters parameters{};
  std::vector<OutputTensor> outputs{};
};

// The protocol's own parameters of a request, taken out of what HTTP or gRPC carried. Leaves the
// others in request.parameters. kInvalidArgument on a wrong type or a reserved name.
Outcome<Ok> apply_request_parameters(InferRequest& request, Parameters parameters);

// The elements of a BYTES tensor; nothing when a length runs past the end or bytes are left over.
std::optional<std::vector<std::string_view>> split_bytes_elements(std::span<const std::byte> bytes);
// How many elements split_bytes_elements would find; nothing as above.
std::optional<std::uint64_t> count_bytes_elements(std::span<const std::byte> bytes);
// Appends one BYTES element.
void append_bytes_element(std::vector<std::byte>& to, std::string_view element);

}  // namespace septet::inference
