#include "serve/edge/warm_up.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/prng.h"
#include "serve/model_versions.h"
#include "serve/request_check.h"

namespace septet::serve {

using inference::TensorConfig;
using inference::WarmupInput;
using inference::WarmupSample;

namespace {

constexpr std::uint64_t kMaxInputBytes = std::uint64_t{1} << 30;

// The bytes of one batch entry.
Result<std::vector<std::byte>> entry_bytes(const ModelFiles& files, const WarmupInput& input,
                                           Prng& prng) {
  if (input.source == WarmupInput::Source::kFile) {
    if (!is_safe_path(input.file)) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("input_data_file '{}' leaves the warmup folder", input.file));
    }
    auto text = read_whole_file(files.folder + "/warmup/" + input.file, kMaxInputBytes);
    if (!text.ok()) {
      return text.error();
    }
    const auto bytes = std::as_bytes(std::span(*text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  const auto count = inference::element_count(input.dims);
  constexpr std::size_t kLengthBytes = 4;  // an empty string is its length alone
  const std::size_t each =
      input.datatype == Datatype::kBytes ? kLengthBytes : inference::element_size(input.datatype);
  if (!count || *count * each > kMaxInputBytes) {
    return make_error(ErrorKind::kUsage, fmt::format("dims {} are no shape that can be filled",
                                                     inference::shape_text(input.dims)));
  }
  std::vector<std::byte> bytes(*count * each);
  // Strings fall back to empty ones. Small whole numbers are valid in every other type.
  if (input.source == WarmupInput::Source::kRandom && input.datatype != Datatype::kBytes &&
      input.datatype != Datatype::kBool) {
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(prng.below(64));
    }
  }
  return bytes;
}

}  // namespace

Result<Ok> warm_up(const ModelFiles& files, const ModelConfig& config, ModelInstance& instance) {
  Prng prng(1);
  for (const WarmupSample& sample : config.warmup) {
    const auto fail = [&](const std::string& why) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("failed to run warmup sample '{}': {}", sample.name, why),
                        "correct model_warmup");
    };
    const int batch = std::max(static_cast<int>(sample.batch_size), 1);
    std::vector<std::vector<std::byte>> memory;
    std::vector<TensorView> views;
    for (const TensorConfig& known : config.inputs) {
      const auto given = sample.inputs.find(known.name);
      if (given == sample.inputs.end()) {
        continue;  // the engine says whether it needs it
      }
      const auto entry = entry_bytes(files, given->second, prng);
      if (!entry.ok()) {
        return fail(entry.error().message);
      }
      std::vector<std::byte>& bytes = memory.emplace_back();
      for (int i = 0; i < batch; ++i) {
        bytes.insert(bytes.end(), entry->begin(), entry->end());
      }
      Shape shape = given->second.dims;
      if (config.max_batch_size > 0) {
        shape.insert(shape.begin(), batch);
      }
      views.push_back(
          {known.name, given->second.datatype, shape_for_backend(config, known, shape), {}});
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
      views[i].bytes = memory[i];
    }
    std::vector<std::string> outputs;
    for (const TensorConfig& output : config.outputs) {
      outputs.push_back(output.name);
    }
    for (std::uint32_t i = 0; i < sample.count; ++i) {
      const auto ran = instance.run({.inputs = views, .outputs = outputs, .batch_size = batch});
      if (!ran.ok()) {
        return fail(ran.error().message);
      }
    }
  }
  return Ok{};
}

}  // namespace septet::serve
