#include "inference/edge/grpc_codec.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "inference/edge/proto/grpc_service.pb.h"

namespace septet::inference {

namespace {

namespace proto = ::inference;

Outcome<ParameterValue> value_of(const std::string& name, const proto::InferParameter& from) {
  switch (from.parameter_choice_case()) {
    case proto::InferParameter::kBoolParam:
      return ParameterValue(from.bool_param());
    case proto::InferParameter::kInt64Param:
      return ParameterValue(std::int64_t{from.int64_param()});
    case proto::InferParameter::kUint64Param:
      return ParameterValue(std::uint64_t{from.uint64_param()});
    case proto::InferParameter::kDoubleParam:
      return ParameterValue(from.double_param());
    case proto::InferParameter::kStringParam:
      return ParameterValue(from.string_param());
    case proto::InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return invalid_argument(fmt::format("parameter '{}' has no value", name));
}

template <typename Map>
Outcome<Parameters> parameters_of(const Map& from) {
  Parameters parameters;
  for (const auto& [name, value] : from) {
    auto read = value_of(name, value);
    SEPTET_TRY(read);
    parameters[name] = std::move(*read);
  }
  return parameters;
}

template <typename Map>
void write_parameters(const Parameters& from, Map& to) {
  for (const auto& [name, value] : from) {
    proto::InferParameter& parameter = to[name];
    if (const auto* flag = std::get_if<bool>(&value)) {
      parameter.set_bool_param(*flag);
    } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
      parameter.set_int64_param(*whole);
    } else if (const auto* large = std::get_if<std::uint64_t>(&value)) {
      // Older clients know int64 only.
      if (*large <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        parameter.set_int64_param(static_cast<std::int64_t>(*large));
      } else {
        parameter.set_uint64_param(*large);
      }
    } else if (const auto* number = std::get_if<double>(&value)) {
      parameter.set_double_param(*number);
    } else {
      parameter.set_string_param(std::get<std::string>(value));
    }
  }
}

Outcome<std::uint64_t> unsigned_of(std::string_view key, const std::string& tensor,
                                   const ParameterValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value); whole != nullptr && *whole >= 0) {
    return static_cast<std::uint64_t>(*whole);
  }
  if (const auto* large = std::get_if<std::uint64_t>(&value)) {
    return *large;
  }
  return invalid_argument(
      fmt::format("invalid value for parameter '{}' of '{}', expected int64_param", key, tensor));
}

Outcome<std::optional<SharedMemoryRange>> take_shared(Parameters& parameters,
                                                      const std::string& tensor) {
  const auto region = parameters.find("shared_memory_region");
  if (region == parameters.end()) {
    return std::optional<SharedMemoryRange>();
  }
  const auto* name = std::get_if<std::string>(&region->second);
  const auto size = parameters.find("shared_memory_byte_size");
  if (name == nullptr || size == parameters.end()) {
    return invalid_argument(fmt::format(
        "'{}' needs 'shared_memory_region' as string_param and 'shared_memory_byte_size'", tensor));
  }
  SharedMemoryRange range{.region = *name};
  auto bytes = unsigned_of(size->first, tensor, size->second);
  SEPTET_TRY(bytes);
  range.byte_size = *bytes;
  if (const auto offset = parameters.find("shared_memory_offset"); offset != parameters.end()) {
    auto read = unsigned_of(offset->first, tensor, offset->second);
    SEPTET_TRY(read);
    range.offset = *read;
  }
  for (const char* key :
       {"shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"}) {
    parameters.erase(key);
  }
  return std::optional(std::move(range));
}

// Typed elements as bytes; false when one is out of the type's range.
template <typename T, typename Repeated>
bool pack(const Repeated& from, std::vector<std::byte>& to) {
  to.resize(static_cast<std::size_t>(from.size()) * sizeof(T));
  std::size_t at = 0;
  for (const auto value : from) {
    const T narrow = static_cast<T>(value);
    if (static_cast<std::remove_const_t<decltype(value)>>(narrow) != value && value == value) {
      return false;
    }
    std::memcpy(to.data() + at, &narrow, sizeof(T));
    at += sizeof(T);
  }
  return true;
}

bool pack_contents(Datatype datatype, const proto::InferTensorContents& from,
                   std::vector<std::byte>& to) {
  switch (datatype) {
    case Datatype::kBool:
      return pack<bool>(from.bool_contents(), to);
    case Datatype::kUint8:
      return pack<std::uint8_t>(from.uint_contents(), to);
    case Datatype::kUint16:
      return pack<std::uint16_t>(from.uint_contents(), to);
    case Datatype::kUint32:
      return pack<std::uint32_t>(from.uint_contents(), to);
    case Datatype::kUint64:
      return pack<std::uint64_t>(from.uint64_contents(), to);
    case Datatype::kInt8:
      return pack<std::int8_t>(from.int_contents(), to);
    case Datatype::kInt16:
      return pack<std::int16_t>(from.int_contents(), to);
    case Datatype::kInt32:
      return pack<std::int32_t>(from.int_contents(), to);
    case Datatype::kInt64:
      return pack<std::int64_t>(from.int64_contents(), to);
    case Datatype::kFp32:
      return pack<float>(from.fp32_contents(), to);
    case Datatype::kFp64:
      return pack<double>(from.fp64_contents(), to);
    case Datatype::kBytes:
      for (const std::string& element : from.bytes_contents()) {
        append_bytes_element(to, element);
      }
      return true;
    case Datatype::kInvalid:
    case Datatype::kFp16:
    case Datatype::kBf16:
      break;
  }
  return false;
}

Blob view_of(const std::string& text) { return Blob{std::as_bytes(std::span(text)), nullptr}; }

Outcome<InputTensor> input_of(const proto::ModelInferRequest::InferInputTensor& from) {
  InputTensor input{.name = from.name(), .datatype = datatype_from_wire(from.datatype())};
  if (input.datatype == Datatype::kInvalid) {
    return invalid_argument(
        fmt::format("'{}' has the unknown datatype '{}'", from.name(), from.datatype()));
  }
  input.shape.assign(from.shape().begin(), from.shape().end());
  auto parameters = parameters_of(from.parameters());
  SEPTET_TRY(parameters);
  auto shared = take_shared(*parameters, input.name);
  SEPTET_TRY(shared);
  input.shared = std::move(*shared);
  input.parameters = std::move(*parameters);
  return input;
}

Outcome<RequestedOutput> output_of(
    const proto::ModelInferRequest::InferRequestedOutputTensor& from) {
  RequestedOutput output{.name = from.name(), .binary = true};
  auto parameters = parameters_of(from.parameters());
  SEPTET_TRY(parameters);
  if (const auto found = parameters->find("classification"); found != parameters->end()) {
    const auto k = unsigned_of(found->first, output.name, found->second);
    SEPTET_TRY(k);
    if (*k == 0 || *k > UINT32_MAX) {
      return invalid_argument(fmt::format(
          "invalid value for 'classification' of '{}', expected a value above 0", output.name));
    }
    output.classification = static_cast<std::uint32_t>(*k);
    parameters->erase(found);
  }
  auto shared = take_shared(*parameters, output.name);
  SEPTET_TRY(shared);
  output.shared = std::move(*shared);
  if (output.shared && output.classification != 0) {
    return invalid_argument(fmt::format(
        "output '{}' asks for shared memory together with 'classification'", output.name));
  }
  output.parameters = std::move(*parameters);
  return output;
}

// Gives each input its data, raw or typed.
Outcome<Ok> take_contents(const proto::ModelInferRequest& message,
                          const std::vector<Blob>& raw_tensors, InferRequest& request) {
  const bool raw = !raw_tensors.empty();
  std::size_t next_raw = 0;
  for (int i = 0; i < message.inputs_size(); ++i) {
    InputTensor& input = request.inputs[static_cast<std::size_t>(i)];
    if (input.shared) {
      continue;
    }
    if (raw) {
      if (message.inputs(i).has_contents()) {
        return invalid_argument(fmt::format(
            "contents field must not be specified when using raw_input_contents for '{}' for "
            "model '{}'",
            input.name, message.model_name()));
      }
      if (next_raw >= raw_tensors.size()) {
        return invalid_argument(
            fmt::format("expected more raw_input_contents than the {} given for model '{}'",
                        raw_tensors.size(), message.model_name()));
      }
      input.data = raw_tensors[next_raw++];
      continue;
    }
    std::vector<std::byte> bytes;
    if (!pack_contents(input.datatype, message.inputs(i).contents(), bytes)) {
      return invalid_argument(fmt::format("contents of '{}' do not fit its datatype {}", input.name,
                                          wire_name(input.datatype)));
    }
    input.data = own_bytes(std::move(bytes));
  }
  if (next_raw < raw_tensors.size()) {
    return invalid_argument(fmt::format("expected {} raw_input_contents but got {} for model '{}'",
                                        next_raw, raw_tensors.size(), message.model_name()));
  }
  return Ok{};
}

void write_shared(const SharedMemoryRange& range,
                  google::protobuf::Map<std::string, proto::InferParameter>& to) {
  to["shared_memory_region"].set_string_param(range.region);
  to["shared_memory_byte_size"].set_int64_param(static_cast<std::int64_t>(range.byte_size));
  if (range.offset != 0) {
    to["shared_memory_offset"].set_int64_param(static_cast<std::int64_t>(range.offset));
  }
}

}  // namespace

Outcome<InferRequest> from_message(const proto::ModelInferRequest& message) {
  std::vector<Blob> raw_tensors;
  for (const std::string& tensor : message.raw_input_contents()) {
    raw_tensors.push_back(view_of(tensor));
  }
  return from_message(message, raw_tensors);
}

Outcome<InferRequest> from_message(const proto::ModelInferRequest& message,
                                   const std::vector<Blob>& raw_tensors) {
  InferRequest request{.model_name = message.model_name(),
                       .model_version = message.model_version(),
                       .id = message.id()};
  request.binary_outputs = true;
  auto parameters = parameters_of(message.parameters());
  SEPTET_TRY(parameters);
  SEPTET_TRY(apply_request_parameters(request, std::move(*parameters)));
  for (const auto& from : message.inputs()) {
    auto input = input_of(from);
    SEPTET_TRY(input);
    request.inputs.push_back(std::move(*input));
  }
  for (const auto& from : message.outputs()) {
    auto output = output_of(from);
    SEPTET_TRY(output);
    request.outputs.push_back(std::move(*output));
  }
  SEPTET_TRY(take_contents(message, raw_tensors, request));
  return request;
}

void to_message(const InferResponse& response, proto::ModelInferResponse& message) {
  message.set_model_name(response.model_name);
  message.set_model_version(response.model_version);
  message.set_id(response.id);
  write_parameters(response.parameters, *message.mutable_parameters());
  for (const OutputTensor& output : response.outputs) {
    proto::ModelInferResponse::InferOutputTensor& to = *message.add_outputs();
    to.set_name(output.name);
    to.set_datatype(std::string(wire_name(output.datatype)));
    to.mutable_shape()->Add(output.shape.begin(), output.shape.end());
    if (output.shared) {
      write_shared(*output.shared, *to.mutable_parameters());
    }
    message.add_raw_output_contents(output.data.text().data(), output.data.size());
  }
}

void to_message(const InferRequest& request, proto::ModelInferRequest& message) {
  message.set_model_name(request.model_name);
  message.set_model_version(request.model_version);
  message.set_id(request.id);
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
  write_parameters(parameters, *message.mutable_parameters());
  for (const InputTensor& input : request.inputs) {
    auto& to = *message.add_inputs();
    to.set_name(input.name);
    to.set_datatype(std::string(wire_name(input.datatype)));
    to.mutable_shape()->Add(input.shape.begin(), input.shape.end());
    if (input.shared) {
      write_shared(*input.shared, *to.mutable_parameters());
    } else {
      message.add_raw_input_contents(input.data.text().data(), input.data.size());
    }
  }
  for (const RequestedOutput& output : request.outputs) {
    auto& to = *message.add_outputs();
    to.set_name(output.name);
    if (output.classification != 0) {
      (*to.mutable_parameters())["classification"].set_int64_param(output.classification);
    }
    if (output.shared) {
      write_shared(*output.shared, *to.mutable_parameters());
    }
  }
}

Outcome<InferResponse> from_message(const proto::ModelInferResponse& message) {
  InferResponse response{.model_name = message.model_name(),
                         .model_version = message.model_version(),
                         .id = message.id()};
  auto parameters = parameters_of(message.parameters());
  SEPTET_TRY(parameters);
  response.parameters = std::move(*parameters);
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& from = message.outputs(i);
    OutputTensor output{.name = from.name(), .datatype = datatype_from_wire(from.datatype())};
    output.shape.assign(from.shape().begin(), from.shape().end());
    output.form = OutputForm::kBinary;
    if (i < message.raw_output_contents_size()) {
      output.data = view_of(message.raw_output_contents(i));
    } else {
      std::vector<std::byte> bytes;
      if (!pack_contents(output.datatype, from.contents(), bytes)) {
        return invalid_argument(fmt::format("output '{}' has no readable contents", from.name()));
      }
      output.data = own_bytes(std::move(bytes));
    }
    response.outputs.push_back(std::move(output));
  }
  return response;
}

}  // namespace septet::inference
