#include <fmt/format.h>

#include "inference/v2_codec.h"
#include "inference/v2_json.h"

namespace septet::inference {

namespace {

using simdjson::dom::element;

// A single bad body must not make the parser keep memory for ever; larger ones are parsed with a
// parser of their own.
constexpr std::size_t kKeptCapacity = std::size_t{4} << 20;

Outcome<std::string> string_member(const element& object, std::string_view key,
                                   std::string_view where) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) {
    return invalid_argument(
        fmt::format("Unable to parse '{}' of {}: it must be a string", key, where));
  }
  return std::string(text);
}

// Takes an unsigned parameter out of the set; nothing when it is not there.
Outcome<std::optional<std::uint64_t>> take_unsigned(Parameters& parameters, std::string_view key,
                                                    std::string_view tensor) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) {
    return std::optional<std::uint64_t>();
  }
  std::optional<std::uint64_t> number;
  if (const auto* whole = std::get_if<std::int64_t>(&found->second); whole != nullptr) {
    if (*whole >= 0) {
      number = static_cast<std::uint64_t>(*whole);
    }
  } else if (const auto* large = std::get_if<std::uint64_t>(&found->second); large != nullptr) {
    number = *large;
  }
  if (!number) {
    return invalid_argument(
        fmt::format("parameter '{}' of '{}' must be an unsigned integer", key, tensor));
  }
  parameters.erase(found);
  return number;
}

// Hands out the binary part in the order in which the JSON asks for it.
class BinaryPart {
 public:
  explicit BinaryPart(const V2Body& body)
      : left_(body.bytes.subspan(body.json_bytes)), owner_(body.owner), kind_(body.kind) {}

  Outcome<Blob> take(std::uint64_t size, std::string_view tensor, Datatype datatype) {
    if (size > left_.size()) {
      return invalid_argument(
          fmt::format("unexpected size for input '{}', expecting {} additional bytes for it but "
                      "the body has {}",
                      tensor, size, left_.size()));
    }
    const Blob blob{left_.first(size), owner_};
    left_ = left_.subspan(size);
    if (kind_ == V2Body::Kind::kShared && datatype == Datatype::kBytes) {
      return own_bytes(std::vector<std::byte>(blob.bytes.begin(), blob.bytes.end()));
    }
    return blob;
  }
  std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
  std::shared_ptr<const void> owner_;
  V2Body::Kind kind_;
};

Outcome<std::optional<SharedMemoryRange>> take_shared(Parameters& parameters,
                                                      std::string_view tensor) {
  const auto region = parameters.find("shared_memory_region");
  if (region == parameters.end()) {
    return std::optional<SharedMemoryRange>();
  }
  const auto* name = std::get_if<std::string>(&region->second);
  if (name == nullptr) {
    return invalid_argument(
        fmt::format("parameter 'shared_memory_region' of '{}' must be a string", tensor));
  }
  SharedMemoryRange range{.region = *name};
  parameters.erase(region);
  auto offset = take_unsigned(parameters, "shared_memory_offset", tensor);
  SEPTET_TRY(offset);
  auto size = take_unsigned(parameters, "shared_memory_byte_size", tensor);
  SEPTET_TRY(size);
  if (!size.value()) {
    return invalid_argument(
        fmt::format("'{}' names a shared memory region without 'shared_memory_byte_size'", tensor));
  }
  range.offset = offset.value().value_or(0);
  range.byte_size = *size.value();
  return std::optional(std::move(range));
}

Outcome<Parameters> parameters_member(const element& object) {
  element value;
  if (object["parameters"].get(value) != simdjson::SUCCESS) {
    return Parameters();
  }
  return v2::parameters_from_json(value);
}

// Name, datatype and shape: what inputs of a request and outputs of a response have in common.
template <typename Tensor>
Outcome<Ok> read_signature(const element& item, std::string_view where, Tensor& tensor) {
  auto name = string_member(item, "name", where);
  SEPTET_TRY(name);
  tensor.name = std::move(*name);
  auto datatype = string_member(item, "datatype", fmt::format("'{}'", tensor.name));
  SEPTET_TRY(datatype);
  tensor.datatype = datatype_from_wire(*datatype);
  if (tensor.datatype == Datatype::kInvalid) {
    return invalid_argument(
        fmt::format("'{}' has the unknown datatype '{}'", tensor.name, *datatype));
  }
  element shape;
  if (item["shape"].get(shape) != simdjson::SUCCESS) {
    return invalid_argument(fmt::format("'{}' has no 'shape'", tensor.name));
  }
  auto read = v2::shape_from_json(tensor.name, shape);
  SEPTET_TRY(read);
  tensor.shape = std::move(*read);
  return Ok{};
}

Outcome<InputTensor> read_input(const element& item, BinaryPart& binary) {
  InputTensor input;
  SEPTET_TRY(read_signature(item, "an input", input));
  auto parameters = parameters_member(item);
  SEPTET_TRY(parameters);
  auto binary_size = take_unsigned(*parameters, "binary_data_size", input.name);
  SEPTET_TRY(binary_size);
  auto shared = take_shared(*parameters, input.name);
  SEPTET_TRY(shared);
  element data;
  const bool has_data = item["data"].get(data) == simdjson::SUCCESS;
  const int ways = int{has_data} + int{shared->has_value()} + int{binary_size->has_value()};
  if (ways != 1) {
    return invalid_argument(
        fmt::format("must specify exactly one of 'data', 'binary_data_size' and "
                    "'shared_memory_region' for input '{}'",
                    input.name));
  }
  if (binary_size->has_value()) {
    auto taken = binary.take(**binary_size, input.name, input.datatype);
    SEPTET_TRY(taken);
    input.data = std::move(*taken);
  } else if (has_data) {
    auto converted = v2::data_from_json(input.name, input.datatype, input.shape, data);
    SEPTET_TRY(converted);
    input.data = std::move(*converted);
  }
  input.shared = std::move(*shared);
  input.parameters = std::move(*parameters);
  return input;
}

Outcome<RequestedOutput> read_requested_output(const element& item) {
  RequestedOutput output;
  auto name = string_member(item, "name", "an output");
  SEPTET_TRY(name);
  output.name = std::move(*name);
  auto parameters = parameters_member(item);
  SEPTET_TRY(parameters);
  if (const auto found = parameters->find("binary_data"); found != parameters->end()) {
    const auto* flag = std::get_if<bool>(&found->second);
    if (flag == nullptr) {
      return invalid_argument(
          fmt::format("parameter 'binary_data' of '{}' must be a boolean", output.name));
    }
    output.binary = *flag;
    parameters->erase(found);
  }
  auto classes = take_unsigned(*parameters, "classification", output.name);
  SEPTET_TRY(classes);
  if (classes->has_value()) {
    if (**classes == 0 || **classes > UINT32_MAX) {
      return invalid_argument(fmt::format(
          "parameter 'classification' of '{}' must be a positive integer", output.name));
    }
    output.classification = static_cast<std::uint32_t>(**classes);
  }
  auto shared = take_shared(*parameters, output.name);
  SEPTET_TRY(shared);
  output.shared = std::move(*shared);
  if (output.shared && (output.classification != 0 || output.binary)) {
    return invalid_argument(
        fmt::format("output '{}' asks for shared memory together with {}", output.name,
                    output.classification != 0 ? "'classification'" : "'binary_data'"));
  }
  output.parameters = std::move(*parameters);
  return output;
}

Outcome<OutputTensor> read_output(const element& item, BinaryPart& binary) {
  OutputTensor output;
  SEPTET_TRY(read_signature(item, "an output", output));
  auto parameters = parameters_member(item);
  SEPTET_TRY(parameters);
  auto binary_size = take_unsigned(*parameters, "binary_data_size", output.name);
  SEPTET_TRY(binary_size);
  element data;
  if (binary_size->has_value()) {
    auto taken = binary.take(**binary_size, output.name, output.datatype);
    SEPTET_TRY(taken);
    output.data = std::move(*taken);
    output.form = OutputForm::kBinary;
  } else if (item["data"].get(data) == simdjson::SUCCESS) {
    auto converted = v2::data_from_json(output.name, output.datatype, output.shape, data);
    SEPTET_TRY(converted);
    output.data = std::move(*converted);
  } else {
    output.form = OutputForm::kSharedMemory;
  }
  return output;
}

std::string optional_string(const element& document, std::string_view key) {
  std::string_view text;
  return document[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

Outcome<Ok> read_outputs_member(const element& document, InferRequest& request) {
  element list;
  if (document["outputs"].get(list) != simdjson::SUCCESS) {
    return Ok{};
  }
  simdjson::dom::array outputs;
  if (list.get(outputs) != simdjson::SUCCESS) {
    return invalid_argument("Unable to parse 'outputs': it must be an array");
  }
  for (const element item : outputs) {
    auto output = read_requested_output(item);
    SEPTET_TRY(output);
    request.outputs.push_back(std::move(*output));
  }
  return Ok{};
}

}  // namespace

struct V2Reader::Parser {
  simdjson::dom::parser kept;
  simdjson::dom::parser large;
  std::string copy;  // of JSON that may change

  // The JSON, safe from changes, with readable bytes behind it.
  std::string_view text_of(const V2Body& body) {
    const std::string_view json = Blob{body.bytes.first(body.json_bytes), nullptr}.text();
    if (body.kind == V2Body::Kind::kOwn) {
      return json;
    }
    copy.assign(json).append(kBodyPadding, '\0');
    return std::string_view(copy).substr(0, json.size());
  }
  // The document lives until the next call; what is taken from it is copied or viewed elsewhere.
  Outcome<element> parse(std::string_view json) {
    simdjson::dom::parser& parser = json.size() > kKeptCapacity ? large : kept;
    element document;
    const auto error =
        parser.parse(json.data(), json.size(), /*realloc_if_needed=*/false).get(document);
    if (error != simdjson::SUCCESS) {
      return invalid_argument(fmt::format("failed to parse the request JSON buffer: {}",
                                          simdjson::error_message(error)));
    }
    if (document.type() != simdjson::dom::element_type::OBJECT) {
      return invalid_argument("failed to parse the request JSON buffer: it is not an object");
    }
    return document;
  }
  void forget_large() {
    if (large.capacity() > 0) {
      large = simdjson::dom::parser();
    }
    if (copy.size() > kKeptCapacity) {
      copy = {};
    }
  }
};

V2Reader::V2Reader() : parser_(std::make_unique<Parser>()) {}
V2Reader::~V2Reader() = default;

Outcome<InferRequest> V2Reader::read_request(const V2Body& body) {
  CHECK(body.json_bytes <= body.bytes.size());
  auto document = parser_->parse(parser_->text_of(body));
  SEPTET_TRY(document);
  InferRequest request;
  request.id = optional_string(*document, "id");
  auto parameters = parameters_member(*document);
  SEPTET_TRY(parameters);
  SEPTET_TRY(apply_request_parameters(request, std::move(*parameters)));
  simdjson::dom::array inputs;
  if ((*document)["inputs"].get(inputs) != simdjson::SUCCESS) {
    return invalid_argument("Unable to parse 'inputs': it must be an array");
  }
  BinaryPart binary(body);
  for (const element item : inputs) {
    auto input = read_input(item, binary);
    SEPTET_TRY(input);
    request.inputs.push_back(std::move(*input));
  }
  if (binary.left() != 0) {
    return invalid_argument(fmt::format(
        "unexpected additional input data: {} bytes behind the last input", binary.left()));
  }
  SEPTET_TRY(read_outputs_member(*document, request));
  parser_->forget_large();
  return request;
}

Outcome<InferResponse> V2Reader::read_response(const V2Body& body) {
  CHECK(body.json_bytes <= body.bytes.size());
  auto document = parser_->parse(parser_->text_of(body));
  SEPTET_TRY(document);
  InferResponse response;
  response.model_name = optional_string(*document, "model_name");
  response.model_version = optional_string(*document, "model_version");
  response.id = optional_string(*document, "id");
  auto parameters = parameters_member(*document);
  SEPTET_TRY(parameters);
  response.parameters = std::move(*parameters);
  simdjson::dom::array outputs;
  if ((*document)["outputs"].get(outputs) != simdjson::SUCCESS) {
    return invalid_argument("Unable to parse 'outputs': it must be an array");
  }
  BinaryPart binary(body);
  for (const element item : outputs) {
    auto output = read_output(item, binary);
    SEPTET_TRY(output);
    response.outputs.push_back(std::move(*output));
  }
  parser_->forget_large();
  return response;
}

std::string V2Reader::read_error(std::string_view body) {
  element document;
  std::string_view text;
  if (parser_->kept.parse(body.data(), body.size()).get(document) == simdjson::SUCCESS &&
      document["error"].get(text) == simdjson::SUCCESS) {
    return std::string(text);
  }
  return std::string(body);
}

}  // namespace septet::inference
