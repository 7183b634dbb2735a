#include "measure/infer_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/prng.h"
#include "base/text.h"

namespace septet::measure {

namespace {

using inference::Datatype;
using inference::Shape;

constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 31;

template <typename T>
void put(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// One random element. Numbers stay small and finite: random bits would be NaNs and denormals, which
// cost a processor other times than real data, and indices out of any range.
void put_random(std::vector<std::byte>& bytes, Datatype datatype, Prng& prng) {
  constexpr std::uint64_t kBound = 128;
  switch (datatype) {
    case Datatype::kBool:
      return put(bytes, static_cast<std::uint8_t>(prng.below(2)));
    case Datatype::kUint8:
    case Datatype::kInt8:
      return put(bytes, static_cast<std::uint8_t>(prng.below(kBound)));
    case Datatype::kUint16:
    case Datatype::kInt16:
      return put(bytes, static_cast<std::uint16_t>(prng.below(kBound)));
    case Datatype::kUint32:
    case Datatype::kInt32:
      return put(bytes, static_cast<std::uint32_t>(prng.below(kBound)));
    case Datatype::kUint64:
    case Datatype::kInt64:
      return put(bytes, prng.below(kBound));
    case Datatype::kFp16:  // exponent -1 and ten random bits: 0.5 to 1
      return put(bytes, static_cast<std::uint16_t>(0x3800U | prng.below(1024)));
    case Datatype::kBf16:
      return put(bytes,
                 static_cast<std::uint16_t>(
                     std::bit_cast<std::uint32_t>(static_cast<float>(prng.uniform())) >> 16));
    case Datatype::kFp32:
      return put(bytes, static_cast<float>(prng.uniform()));
    case Datatype::kFp64:
      return put(bytes, prng.uniform());
    case Datatype::kBytes:
    case Datatype::kInvalid:
      return;
  }
}

std::string random_string(std::size_t length, Prng& prng) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::string text(length, ' ');
  std::generate(text.begin(), text.end(), [&] { return kLetters[prng.below(kLetters.size())]; });
  return text;
}

std::vector<std::byte> make_data(Datatype datatype, std::uint64_t elements,
                                 const InputOptions& options, Prng& prng) {
  std::vector<std::byte> bytes;
  if (datatype == Datatype::kBytes) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      inference::append_bytes_element(bytes, options.string_data.empty()
                                                 ? random_string(options.string_length, prng)
                                                 : options.string_data);
    }
    return bytes;
  }
  const std::size_t size = inference::element_size(datatype) * elements;
  if (options.kind == InputKind::kZero) {
    bytes.resize(size);
    return bytes;
  }
  bytes.reserve(size);
  for (std::uint64_t i = 0; i < elements; ++i) {
    put_random(bytes, datatype, prng);
  }
  return bytes;
}

Error usage(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::kUsage, std::move(message), std::move(hint));
}

Result<inference::InputTensor> make_input(const ModelDescription& model,
                                          const TensorDescription& input,
                                          const InputOptions& options, Prng& prng) {
  const Result<Shape> shape = input_shape(model, input, options);
  if (!shape.ok()) {
    return shape.error();
  }
  if (input.is_shape_tensor) {
    return usage(fmt::format("input '{}' of model '{}' is a shape tensor, which cannot be made up",
                             input.name, model.name),
                 "give its data in a file: --input-data FILE.json");
  }
  inference::InputTensor tensor;
  tensor.name = input.name;
  tensor.datatype = input.datatype;
  tensor.shape = *shape;
  if (model.max_batch_size > 0) {
    tensor.shape.insert(tensor.shape.begin(), options.batch_size);
  }
  const std::optional<std::uint64_t> elements = inference::element_count(tensor.shape);
  const std::size_t each = input.datatype == Datatype::kBytes
                               ? options.string_length + sizeof(std::uint32_t)
                               : inference::element_size(input.datatype);
  if (each == 0 || !elements || *elements > kMaxTensorBytes / each) {
    return usage(fmt::format("cannot make data for input '{}' of model '{}': {} of shape {}",
                             input.name, model.name, inference::wire_name(input.datatype),
                             inference::shape_text(tensor.shape)));
  }
  tensor.data = inference::own_bytes(make_data(input.datatype, *elements, options, prng));
  return tensor;
}

Result<Ok> check_shapes(const ModelDescription& model, const InputOptions& options) {
  for (const auto& [name, shape] : options.shapes) {
    std::vector<std::string> names;
    std::transform(model.inputs.begin(), model.inputs.end(), std::back_inserter(names),
                   [](const TensorDescription& input) { return input.name; });
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return usage(fmt::format("--shape names input '{}', but model '{}' has {}", name, model.name,
                               join_words(names)));
    }
  }
  return Ok{};
}

}  // namespace

bool ServerDescription::has_extension(const std::string& extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

Result<Ok> check_batch(const ModelDescription& model, int batch_size) {
  if (batch_size < 1) {
    return usage(fmt::format("batch size {} is below 1", batch_size));
  }
  if (batch_size > std::max<std::int64_t>(1, model.max_batch_size)) {
    return usage(model.max_batch_size == 0
                     ? fmt::format("model '{}' does not take batches, so not batch size {}",
                                   model.name, batch_size)
                     : fmt::format("batch size {} is above model '{}''s max_batch_size {}",
                                   batch_size, model.name, model.max_batch_size));
  }
  return Ok{};
}

Result<Shape> input_shape(const ModelDescription& model, const TensorDescription& input,
                          const InputOptions& options, const Shape* given) {
  const auto option = options.shapes.find(input.name);
  if (given == nullptr && option != options.shapes.end()) {
    given = &option->second;
  }
  if (given == nullptr) {
    if (std::any_of(input.shape.begin(), input.shape.end(), [](auto size) { return size < 0; })) {
      return usage(fmt::format("input '{}' of model '{}' has the variable shape {}", input.name,
                               model.name, inference::shape_text(input.shape)),
                   fmt::format("say which: --shape {}:1,2,3", input.name));
    }
    return input.shape;
  }
  const bool fits =
      given->size() == input.shape.size() &&
      std::equal(given->begin(), given->end(), input.shape.begin(),
                 [](auto wanted, auto own) { return wanted > 0 && (own < 0 || own == wanted); });
  if (!fits) {
    return usage(fmt::format("shape {} does not fit input '{}' of model '{}', which takes {}",
                             inference::shape_text(*given), input.name, model.name,
                             inference::shape_text(input.shape)));
  }
  return *given;
}

inference::InferRequest empty_request(const ModelDescription& model) {
  inference::InferRequest request;
  request.model_name = model.name;
  for (const TensorDescription& output : model.outputs) {
    inference::RequestedOutput wanted;
    wanted.name = output.name;
    wanted.binary = true;
    request.outputs.push_back(std::move(wanted));
  }
  return request;
}

Result<inference::InferRequest> build_request(const ModelDescription& model,
                                              const InputOptions& options) {
  SEPTET_TRY(check_batch(model, options.batch_size));
  SEPTET_TRY(check_shapes(model, options));
  Prng prng(options.seed);
  inference::InferRequest request = empty_request(model);
  for (const TensorDescription& input : model.inputs) {
    if (input.optional) {
      continue;
    }
    Result<inference::InputTensor> tensor = make_input(model, input, options, prng);
    if (!tensor.ok()) {
      return tensor.error();
    }
    request.inputs.push_back(*std::move(tensor));
  }
  return request;
}

}  // namespace septet::measure
