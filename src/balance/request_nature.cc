#include "balance/request_nature.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "balance/grpc_route.h"
#include "balance/protobuf_fields.h"

namespace septet::balance {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kId = "sequence_id";
constexpr std::string_view kStart = "sequence_start";
constexpr std::string_view kEnd = "sequence_end";

constexpr std::string_view kRegion = "shared_memory_region";
// A tensor's name, type, shape and parameters, before its values.
constexpr std::size_t kTensorHead = 4096;

bool contains(std::string_view text, std::string_view word) {
  return !text.empty() && memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

// 0 and the empty text are no sequence.
std::string number_id(std::uint64_t number) {
  return number == 0 ? std::string() : std::to_string(number);
}

std::string text_id(std::string_view text) {
  return text.empty() ? std::string() : '"' + std::string(text) + '"';
}

std::string json_id(const Json& value) {
  if (value.is_number_integer()) {
    return number_id(value.get<std::uint64_t>());
  }
  return value.is_string() ? text_id(value.get_ref<const std::string&>()) : std::string();
}

bool json_truth(const Json& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  return found != parameters.end() && found->is_boolean() && found->get<bool>();
}

// An InferParameter: 1 bool, 2 int64, 3 string, 5 uint64.
struct Parameter {
  std::uint64_t number = 0;
  std::string_view text;
};

Parameter read_parameter(std::string_view bytes) {
  Parameter parameter;
  while (const std::optional<ProtobufField> field = take_field(bytes)) {
    if (field->number == 3) {
      parameter.text = field->bytes;
    } else if (field->number != 4) {
      parameter.number = field->value;
    }
  }
  return parameter;
}

// An entry of map<string, InferParameter>: 1 key, 2 value.
void read_entry(std::string_view bytes, SequenceWish& wish) {
  std::string_view key;
  std::string_view value;
  while (const std::optional<ProtobufField> field = take_field(bytes)) {
    (field->number == 1 ? key : value) = field->bytes;
  }
  const Parameter parameter = read_parameter(value);
  if (key == kId) {
    wish.id = parameter.text.empty() ? number_id(parameter.number) : text_id(parameter.text);
  } else if (key == kStart) {
    wish.starts = parameter.number != 0;
  } else if (key == kEnd) {
    wish.ends = parameter.number != 0;
  }
}

}  // namespace

SequenceWish read_json_sequence(std::string_view json) {
  if (!contains(json, kId)) {
    return {};
  }
  // Tensors are not kept.
  const auto keep = [](int depth, Json::parse_event_t event, Json& parsed) {
    return depth < 4 && (depth != 1 || event != Json::parse_event_t::key || parsed == "parameters");
  };
  const Json request = Json::parse(json, keep, false);
  if (!request.is_object() || !request.contains("parameters")) {
    return {};
  }
  const Json& parameters = request["parameters"];
  if (!parameters.is_object() || !parameters.contains(kId)) {
    return {};
  }
  return {json_id(parameters[std::string(kId)]),
          {},
          json_truth(parameters, kStart),
          json_truth(parameters, kEnd)};
}

SequenceWish read_proto_sequence(std::string_view framed) {
  constexpr std::uint64_t kModel = 1;
  constexpr std::uint64_t kParameters = 4;
  SequenceWish wish;
  std::string_view model;
  if (framed.size() < kGrpcPrefixBytes || framed[0] != 0) {
    return wish;
  }
  framed.remove_prefix(kGrpcPrefixBytes);
  while (const std::optional<ProtobufField> field = take_field(framed)) {
    if (field->number == kModel) {
      model = field->bytes;
    } else if (field->number == kParameters) {
      read_entry(field->bytes, wish);
    }
  }
  if (!wish.id.empty()) {
    wish.model = model;
  }
  return wish;
}

bool json_names_shared_memory(std::string_view json) { return contains(json, kRegion); }

bool proto_names_shared_memory(std::string_view framed) {
  if (framed.size() < kGrpcPrefixBytes || framed[0] != 0) {
    return true;
  }
  framed.remove_prefix(kGrpcPrefixBytes);
  while (const std::optional<ProtobufField> field = take_field(framed)) {
    const bool is_tensor = field->number == 5 || field->number == 6;  // inputs, outputs
    if (is_tensor && contains(field->bytes.substr(0, kTensorHead), kRegion)) {
      return true;
    }
  }
  return !framed.empty();
}

}  // namespace septet::balance
