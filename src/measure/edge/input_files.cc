#include "measure/edge/input_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/text.h"
#include "inference/json_writer.h"
#include "inference/v2_codec.h"
#include "os/durable_file.h"

namespace septet::measure {

namespace {

using inference::Datatype;
using inference::Shape;
using nlohmann::json;

constexpr std::size_t kMostFileBytes = std::size_t{2} << 30;

// One input of one step: the bytes of one batch element.
struct StepTensor {
  Shape shape;
  std::vector<std::byte> bytes;
};
struct Step {
  std::map<std::string, StepTensor> inputs;
  ExpectedOutputs outputs;
};
using Stream = std::vector<Step>;

Error usage(const std::string& where, const std::string& what, std::string hint = {}) {
  return make_error(ErrorKind::kUsage, fmt::format("{}: {}", where, what), std::move(hint));
}

// The bytes of a JSON array: the v2 codec knows every type's rules, so it is asked to read them.
Result<std::vector<std::byte>> bytes_of_values(const std::string& where,
                                               const TensorDescription& input, const Shape& shape,
                                               const json& values) {
  inference::JsonWriter writer;
  writer.begin_object().key("inputs").begin_array().begin_object();
  writer.key("name").value(input.name);
  writer.key("datatype").value(inference::wire_name(input.datatype));
  writer.key("shape").array(shape).key("data").raw(values.dump());
  writer.end_object().end_array().end_object();
  std::string text = writer.take();
  const std::size_t length = text.size();
  text.resize(length + inference::kBodyPadding);
  inference::V2Reader reader;
  const auto request =
      reader.read_request({std::as_bytes(std::span(text.data(), length)), length, nullptr});
  if (!request.ok()) {
    return usage(where, request.error().message);
  }
  const auto bytes = request->inputs[0].data.bytes;
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<Ok> check_size(const std::string& where, const TensorDescription& input,
                      const StepTensor& tensor) {
  if (input.datatype == Datatype::kBytes) {
    return Ok{};
  }
  const std::optional<std::uint64_t> size = inference::byte_size(input.datatype, tensor.shape);
  if (!size || *size != tensor.bytes.size()) {
    return usage(where,
                 fmt::format("input '{}' has {} bytes, but {} of shape {} needs {}", input.name,
                             tensor.bytes.size(), inference::wire_name(input.datatype),
                             inference::shape_text(tensor.shape), size.value_or(0)));
  }
  return Ok{};
}

// The bytes of {"b64": text}; nothing when the text is not base64.
std::optional<std::vector<std::byte>> bytes_of_base64(const json& text) {
  return text.is_string() ? decode_base64(text.get<std::string>()) : std::nullopt;
}

Result<StepTensor> read_tensor(const std::string& where, const ModelDescription& model,
                               const TensorDescription& input, const json& value,
                               const InputOptions& options) {
  const json* values = &value;
  std::optional<Shape> own_shape;
  if (value.is_object()) {
    if (const auto shape = value.find("shape"); shape != value.end()) {
      own_shape.emplace();
      for (const json& size : *shape) {
        own_shape->push_back(size.is_number_integer() ? size.get<std::int64_t>() : 0);
      }
    }
    if (const auto content = value.find("content"); content != value.end()) {
      values = &*content;
    }
  }
  const Result<Shape> shape = input_shape(model, input, options, own_shape ? &*own_shape : nullptr);
  if (!shape.ok()) {
    return usage(where, shape.error().message,
                 R"(give {"content": [...], "shape": [...]} or --shape)");
  }
  StepTensor tensor{*shape, {}};
  if (values->is_object() && values->contains("b64")) {
    const auto bytes = bytes_of_base64((*values)["b64"]);
    if (!bytes) {
      return usage(where, fmt::format("input '{}' is not base64", input.name));
    }
    tensor.bytes = *bytes;
  } else {
    Result<std::vector<std::byte>> bytes = bytes_of_values(where, input, *shape, *values);
    if (!bytes.ok()) {
      return bytes.error();
    }
    tensor.bytes = *std::move(bytes);
  }
  SEPTET_TRY(check_size(where, input, tensor));
  return tensor;
}

Result<Step> read_step(const std::string& where, const ModelDescription& model, const json& entry,
                       const InputOptions& options) {
  if (!entry.is_object()) {
    return usage(where, "not an object of inputs");
  }
  Step step;
  for (const TensorDescription& input : model.inputs) {
    const auto value = entry.find(input.name);
    if (value == entry.end()) {
      if (input.optional) {
        continue;
      }
      return usage(where, fmt::format("no data for input '{}'", input.name));
    }
    Result<StepTensor> tensor = read_tensor(where, model, input, *value, options);
    if (!tensor.ok()) {
      return tensor.error();
    }
    step.inputs.emplace(input.name, *std::move(tensor));
  }
  for (const auto& [name, value] : entry.items()) {
    if (!step.inputs.contains(name)) {
      return usage(where, fmt::format("model '{}' has no input '{}'", model.name, name));
    }
  }
  return step;
}

Result<Stream> read_stream(const std::string& where, const ModelDescription& model,
                           const json& entries, const InputOptions& options) {
  Stream stream;
  for (const json& entry : entries) {
    Result<Step> step =
        read_step(fmt::format("{}, entry {}", where, stream.size() + 1), model, entry, options);
    if (!step.ok()) {
      return step.error();
    }
    stream.push_back(*std::move(step));
  }
  return stream;
}

std::int64_t leaves(const json& values) {
  if (!values.is_array()) {
    return 1;
  }
  return std::accumulate(values.begin(), values.end(), std::int64_t{0},
                         [](std::int64_t sum, const json& inner) { return sum + leaves(inner); });
}

Result<ExpectedOutputs> read_expected(const std::string& where, const ModelDescription& model,
                                      const json& entry) {
  if (!entry.is_object()) {
    return usage(where, "not an object of outputs");
  }
  ExpectedOutputs expected;
  for (const auto& [name, value] : entry.items()) {
    const auto output =
        std::find_if(model.outputs.begin(), model.outputs.end(),
                     [&wanted = name](const TensorDescription& one) { return one.name == wanted; });
    if (output == model.outputs.end()) {
      return usage(where, fmt::format("model '{}' has no output '{}'", model.name, name));
    }
    if (value.is_object() && value.contains("b64")) {
      const auto bytes = bytes_of_base64(value["b64"]);
      if (!bytes) {
        return usage(where, fmt::format("output '{}' is not base64", name));
      }
      expected[name] = *bytes;
      continue;
    }
    const json& values = value.is_object() && value.contains("content") ? value["content"] : value;
    // Only the elements are compared, so any shape that holds them will do.
    Result<std::vector<std::byte>> bytes =
        bytes_of_values(where, *output, Shape{leaves(values)}, values);
    if (!bytes.ok()) {
      return bytes.error();
    }
    expected[name] = *std::move(bytes);
  }
  return expected;
}

// Adds the file's validation_data, which has the form of its data.
Result<Ok> add_expected(const std::string& path, const ModelDescription& model, const json& entries,
                        bool streams_inside, std::vector<Stream>& streams) {
  const json all = streams_inside ? entries : json::array({entries});
  const auto unlike = [&] { return usage(path, "'validation_data' has not the form of 'data'"); };
  if (!all.is_array() || all.size() != streams.size()) {
    return unlike();
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (!all[s].is_array() || all[s].size() != streams[s].size()) {
      return unlike();
    }
    for (std::size_t i = 0; i < streams[s].size(); ++i) {
      Result<ExpectedOutputs> expected =
          read_expected(fmt::format("{}, validation entry {}", path, i + 1), model, all[s][i]);
      if (!expected.ok()) {
        return expected.error();
      }
      streams[s][i].outputs = *std::move(expected);
    }
  }
  return Ok{};
}

Result<std::vector<Stream>> read_json_streams(const std::string& path,
                                              const ModelDescription& model, const json& data,
                                              const InputOptions& options) {
  std::vector<Stream> streams;
  if (!data.front().is_array()) {
    Result<Stream> stream = read_stream(path, model, data, options);
    if (!stream.ok()) {
      return stream.error();
    }
    streams.push_back(*std::move(stream));
    return streams;
  }
  for (const json& entries : data) {
    const std::string where = fmt::format("{}, stream {}", path, streams.size() + 1);
    if (!entries.is_array() || entries.empty()) {
      return usage(where, "not a non-empty array of entries");
    }
    Result<Stream> stream = read_stream(where, model, entries, options);
    if (!stream.ok()) {
      return stream.error();
    }
    streams.push_back(*std::move(stream));
  }
  return streams;
}

Result<std::vector<Stream>> read_json_file(const std::string& path, const ModelDescription& model,
                                           const InputOptions& options) {
  const Result<std::string> text = os::read_whole_file(path, kMostFileBytes);
  if (!text.ok()) {
    return text.error();
  }
  const json document = json::parse(*text, nullptr, false);
  const auto data = document.is_object() ? document.find("data") : document.end();
  if (document.is_discarded() || data == document.end() || !data->is_array() || data->empty()) {
    return usage(path, "not a JSON object with a non-empty array 'data'");
  }
  Result<std::vector<Stream>> streams = read_json_streams(path, model, *data, options);
  if (const auto expected = document.find("validation_data");
      streams.ok() && expected != document.end()) {
    SEPTET_TRY(add_expected(path, model, *expected, data->front().is_array(), *streams));
  }
  return streams;
}

Result<std::vector<Stream>> read_folder(const std::string& path, const ModelDescription& model,
                                        const InputOptions& options) {
  Step step;
  for (const TensorDescription& input : model.inputs) {
    const std::string file = path + "/" + input.name;
    const Result<std::string> text = os::read_whole_file(file, kMostFileBytes);
    if (!text.ok()) {
      if (input.optional && text.error().kind == ErrorKind::kNotFound) {
        continue;
      }
      return text.error();
    }
    const Result<Shape> shape = input_shape(model, input, options);
    if (!shape.ok()) {
      return shape.error();
    }
    StepTensor tensor{*shape, {}};
    if (input.datatype == Datatype::kBytes) {
      for (const std::string_view line : split(trim(*text), '\n')) {
        inference::append_bytes_element(tensor.bytes, line);
      }
    } else {
      const auto bytes = std::as_bytes(std::span(*text));
      tensor.bytes.assign(bytes.begin(), bytes.end());
    }
    SEPTET_TRY(check_size(file, input, tensor));
    step.inputs.emplace(input.name, std::move(tensor));
  }
  return std::vector<Stream>{Stream{std::move(step)}};
}

// The request that starts at a step of its stream.
Result<inference::InferRequest> batch_request(const ModelDescription& model, const Stream& stream,
                                              std::size_t first, int batch_size) {
  inference::InferRequest request = empty_request(model);
  for (const auto& [name, tensor] : stream[first].inputs) {
    inference::InputTensor input;
    input.name = name;
    for (const TensorDescription& description : model.inputs) {
      input.datatype = description.name == name ? description.datatype : input.datatype;
    }
    input.shape = tensor.shape;
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch_size); ++i) {
      const Step& step = stream[(first + i) % stream.size()];
      const auto part = step.inputs.find(name);
      if (part == step.inputs.end() || part->second.shape != tensor.shape) {
        return make_error(ErrorKind::kUsage,
                          fmt::format("the entries of a batch differ in input '{}'", name),
                          "use -b 1 or entries of equal shapes");
      }
      bytes.insert(bytes.end(), part->second.bytes.begin(), part->second.bytes.end());
    }
    if (model.max_batch_size > 0) {
      input.shape.insert(input.shape.begin(), batch_size);
    }
    input.data = inference::own_bytes(std::move(bytes));
    request.inputs.push_back(std::move(input));
  }
  return request;
}

// What the answer to that request must hold: the outputs that every step of the batch names.
ExpectedOutputs batch_expected(const Stream& stream, std::size_t first, int batch_size) {
  ExpectedOutputs expected = stream[first].outputs;
  for (std::size_t i = 1; i < static_cast<std::size_t>(batch_size); ++i) {
    const ExpectedOutputs& next = stream[(first + i) % stream.size()].outputs;
    std::erase_if(expected, [&](const auto& output) { return !next.contains(output.first); });
    for (auto& [name, bytes] : expected) {
      bytes.insert(bytes.end(), next.at(name).begin(), next.at(name).end());
    }
  }
  return expected;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<InputData> read_input_files(const std::vector<std::string>& paths,
                                   const ModelDescription& model, const InputOptions& options) {
  SEPTET_TRY(check_batch(model, options.batch_size));
  InputData result;
  for (const std::string& path : paths) {
    const Result<std::vector<Stream>> streams =
        is_folder(path) ? read_folder(path, model, options) : read_json_file(path, model, options);
    if (!streams.ok()) {
      return streams.error();
    }
    for (const Stream& stream : *streams) {
      std::vector<inference::InferRequest> requests;
      std::vector<ExpectedOutputs> expected;
      const auto step = static_cast<std::size_t>(options.batch_size);
      for (std::size_t first = 0; first < stream.size(); first += step) {
        Result<inference::InferRequest> request =
            batch_request(model, stream, first, options.batch_size);
        if (!request.ok()) {
          return request.error();
        }
        requests.push_back(*std::move(request));
        expected.push_back(batch_expected(stream, first, options.batch_size));
      }
      result.requests.push_back(std::move(requests));
      result.expected.push_back(std::move(expected));
    }
  }
  return result;
}

}  // namespace septet::measure
