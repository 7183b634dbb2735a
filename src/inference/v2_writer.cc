#include <fmt/format.h>

#include "inference/v2_codec.h"
#include "inference/v2_json.h"

namespace septet::inference {

namespace {

void write_shared(JsonWriter& json, const SharedMemoryRange& range) {
  json.key("shared_memory_region").value(range.region);
  json.key("shared_memory_byte_size").value(range.byte_size);
  if (range.offset != 0) {
    json.key("shared_memory_offset").value(range.offset);
  }
}

void write_signature(JsonWriter& json, std::string_view name, Datatype datatype,
                     const Shape& shape) {
  json.key("name").value(name);
  json.key("datatype").value(wire_name(datatype));
  json.key("shape").array(shape);
}

// The parameters that apply_request_parameters takes out.
Parameters request_parameters(const InferRequest& request) {
  Parameters parameters = request.parameters;
  if (request.in_sequence()) {
    std::visit([&](const auto& id) { parameters["sequence_id"] = id; }, request.sequence_id);
    parameters["sequence_start"] = request.sequence_start;
    parameters["sequence_end"] = request.sequence_end;
  }
  if (request.priority != 0) {
    parameters["priority"] = request.priority;
  }
  if (request.timeout_us != 0) {
    parameters["timeout"] = request.timeout_us;
  }
  if (request.outputs.empty() && request.binary_outputs) {
    parameters["binary_data_output"] = true;
  }
  return parameters;
}

void write_requested_output(JsonWriter& json, const RequestedOutput& output) {
  json.begin_object().key("name").value(output.name);
  json.key("parameters").begin_object();
  if (output.classification != 0) {
    json.key("classification").value(output.classification);
  }
  if (output.shared) {
    write_shared(json, *output.shared);
  } else {
    json.key("binary_data").value(output.binary);
  }
  json.end_object().end_object();
}

enum class InputForm { kBinary, kJson };

Outcome<Ok> write_input(JsonWriter& json, const InputTensor& input, InputForm form,
                        std::vector<Blob>& binary) {
  json.begin_object();
  write_signature(json, input.name, input.datatype, input.shape);
  if (input.shared) {
    json.key("parameters").begin_object();
    write_shared(json, *input.shared);
    json.end_object();
  } else if (form == InputForm::kBinary) {
    json.key("parameters").begin_object();
    json.key("binary_data_size").value(std::uint64_t{input.data.size()});
    json.end_object();
    binary.push_back(input.data);
  } else {
    json.key("data");
    SEPTET_TRY(v2::data_to_json(json, input.name, input.datatype, input.data.bytes));
  }
  json.end_object();
  return Ok{};
}

Outcome<V2Message> write_request_as(const InferRequest& request, InputForm form) {
  V2Message message;
  JsonWriter json;
  json.reserve(256);
  json.begin_object().key("id").value(request.id);
  if (const Parameters parameters = request_parameters(request); !parameters.empty()) {
    json.key("parameters");
    v2::parameters_to_json(json, parameters);
  }
  json.key("inputs").begin_array();
  for (const InputTensor& input : request.inputs) {
    SEPTET_TRY(write_input(json, input, form, message.binary));
  }
  json.end_array();
  if (!request.outputs.empty()) {
    json.key("outputs").begin_array();
    for (const RequestedOutput& output : request.outputs) {
      write_requested_output(json, output);
    }
    json.end_array();
  }
  json.end_object();
  message.json = json.take();
  return message;
}

Outcome<Ok> write_output(JsonWriter& json, const OutputTensor& output, std::vector<Blob>& binary) {
  json.begin_object();
  write_signature(json, output.name, output.datatype, output.shape);
  switch (output.form) {
    case OutputForm::kBinary:
      json.key("parameters").begin_object();
      json.key("binary_data_size").value(std::uint64_t{output.data.size()});
      json.end_object();
      binary.push_back(output.data);
      break;
    case OutputForm::kJson:
      json.key("data");
      SEPTET_TRY(v2::data_to_json(json, output.name, output.datatype, output.data.bytes));
      break;
    case OutputForm::kSharedMemory:
      break;  // real clients take an output with parameters but no binary_data_size for an error
  }
  json.end_object();
  return Ok{};
}

}  // namespace

std::uint64_t V2Message::binary_bytes() const {
  std::uint64_t sum = 0;
  for (const Blob& piece : binary) {
    sum += piece.size();
  }
  return sum;
}

V2Message write_request(const InferRequest& request) {
  return write_request_as(request, InputForm::kBinary).value();  // binary has no way to fail
}

Outcome<V2Message> write_request_as_json(const InferRequest& request) {
  return write_request_as(request, InputForm::kJson);
}

Outcome<V2Message> write_response(const InferResponse& response) {
  V2Message message;
  JsonWriter json;
  json.reserve(256);
  json.begin_object();
  json.key("model_name").value(response.model_name);
  json.key("model_version").value(response.model_version);
  if (!response.id.empty()) {
    json.key("id").value(response.id);
  }
  if (!response.parameters.empty()) {
    json.key("parameters");
    v2::parameters_to_json(json, response.parameters);
  }
  json.key("outputs").begin_array();
  for (const OutputTensor& output : response.outputs) {
    SEPTET_TRY(write_output(json, output, message.binary));
  }
  json.end_array().end_object();
  message.json = json.take();
  return message;
}

}  // namespace septet::inference
