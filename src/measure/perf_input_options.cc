#include "measure/perf_input_options.h"

#include <fmt/format.h>

#include "base/text.h"

namespace septet::measure {

namespace {

Error usage(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::kUsage, std::move(message), std::move(hint));
}

Result<Ok> read_shape(const std::string& text, InputOptions& input) {
  // The last colon: input names may hold one.
  const std::size_t colon = text.rfind(':');
  const Error wrong =
      usage(fmt::format("--shape '{}' is not NAME:1,2,3 with whole numbers above 0", text));
  if (colon == std::string::npos || colon == 0) {
    return wrong;
  }
  std::vector<std::int64_t> shape;
  for (const std::string_view piece : split(std::string_view(text).substr(colon + 1), ',')) {
    const std::optional<std::int64_t> size = parse_int(piece);
    if (!size || *size < 1) {
      return wrong;
    }
    shape.push_back(*size);
  }
  input.shapes[text.substr(0, colon)] = std::move(shape);
  return Ok{};
}

// "NAME:VALUE:TYPE"; the value may hold colons.
Result<Ok> read_parameter(const std::string& text, InputOptions& input) {
  const std::size_t first = text.find(':');
  const std::size_t last = text.rfind(':');
  const Error wrong = usage(fmt::format("--request-parameter '{}' is not NAME:VALUE:TYPE", text),
                            "types are bool, int, uint, double and string, e.g. max_tokens:16:int");
  if (first == std::string::npos || first == 0 || first == last) {
    return wrong;
  }
  const std::string value = text.substr(first + 1, last - first - 1);
  const std::string type = to_lower(text.substr(last + 1));
  inference::ParameterValue parsed = value;
  if (type == "bool" && (value == "true" || value == "false")) {
    parsed = value == "true";
  } else if (const auto whole = parse_int(value); type == "int" && whole) {
    parsed = *whole;
  } else if (const auto count = parse_uint(value); type == "uint" && count) {
    parsed = *count;
  } else if (const auto number = parse_double(value); type == "double" && number) {
    parsed = *number;
  } else if (type != "string") {
    return wrong;
  }
  input.parameters[text.substr(0, first)] = std::move(parsed);
  return Ok{};
}

Result<TensorFormat> tensor_format(std::string_view option, const std::string& word) {
  const std::string format = to_lower(word);
  if (format != "binary" && format != "json") {
    return usage(fmt::format("{} '{}' is neither binary nor json", option, word));
  }
  return format == "json" ? TensorFormat::kJson : TensorFormat::kBinary;
}

Result<Ok> read_formats(const PerfArguments& arguments, InputOptions& input) {
  const auto sent = tensor_format("--input-tensor-format", arguments.input_tensor_format);
  const auto asked = tensor_format("--output-tensor-format", arguments.output_tensor_format);
  if (!sent.ok() || !asked.ok()) {
    return sent.ok() ? asked.error() : sent.error();
  }
  input.input_format = *sent;
  input.output_format = *asked;
  return Ok{};
}

}  // namespace

Result<Ok> read_called_models(const PerfArguments& arguments, PerfPlan& plan) {
  if (arguments.called_models.empty()) {
    return Ok{};
  }
  for (const std::string_view word : split(arguments.called_models, ',')) {
    const std::string_view model = trim(word);
    const std::size_t colon = model.find(':');
    const std::string_view version =
        colon == std::string_view::npos ? std::string_view() : model.substr(colon + 1);
    if (model.empty() || colon == 0 || (colon != std::string_view::npos && !parse_uint(version))) {
      return usage(fmt::format("--bls-composing-models '{}' is not NAME[:VERSION],...",
                               arguments.called_models));
    }
    plan.parts.push_back({std::string(model.substr(0, colon)), std::string(version)});
  }
  return Ok{};
}

Result<Ok> read_sequences(const PerfArguments& arguments, PerfPlan& plan) {
  if (arguments.live_sequences == 0 || arguments.sequence_length == 0 ||
      arguments.sequence_length_variation < 0 || arguments.sequence_length_variation > 100) {
    return usage(
        "--num-of-sequences and --sequence-length must be above 0, and the variation of the "
        "length within 0 to 100 percent");
  }
  if (!arguments.sequence_id_range) {
    return Ok{};
  }
  const std::vector<std::string_view> ends = split(*arguments.sequence_id_range, ':');
  const std::optional<std::uint64_t> first = parse_uint(ends.front());
  const std::optional<std::uint64_t> last = ends.size() > 1 ? parse_uint(ends.back()) : UINT64_MAX;
  if (ends.size() > 2 || !first || !last || *first == 0 || *last < *first) {
    return usage(fmt::format("--sequence-id-range '{}' is not START:END with whole numbers above 0",
                             *arguments.sequence_id_range));
  }
  plan.first_sequence_id = *first;
  plan.last_sequence_id = *last;
  return Ok{};
}

Result<Ok> read_input(const PerfArguments& arguments, PerfPlan& plan) {
  if (arguments.batch_size < 1) {
    return usage(fmt::format("batch size {} is below 1", arguments.batch_size));
  }
  plan.input.batch_size = arguments.batch_size;
  plan.input.string_length = arguments.string_length;
  plan.input.string_data = arguments.string_data;
  for (const std::string& word : arguments.input_data) {
    if (word == "random" || word == "zero") {
      plan.input.kind = word == "zero" ? InputKind::kZero : InputKind::kRandom;
    } else {
      plan.input_files.push_back(word);
    }
  }
  SEPTET_TRY(read_formats(arguments, plan.input));
  for (const std::string& parameter : arguments.request_parameters) {
    SEPTET_TRY(read_parameter(parameter, plan.input));
  }
  for (const std::string& shape : arguments.shapes) {
    SEPTET_TRY(read_shape(shape, plan.input));
  }
  if (arguments.shared_memory != "none" && arguments.shared_memory != "system") {
    return usage(fmt::format("--shared-memory '{}' is not offered", arguments.shared_memory),
                 "use none or system; the load generator holds no GPU memory");
  }
  plan.shared_memory = arguments.shared_memory == "system";
  return Ok{};
}

}  // namespace septet::measure
