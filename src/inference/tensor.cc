#include "inference/tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"

namespace septet::inference {

namespace {

constexpr std::size_t kLengthBytes = 4;

// Little-endian on the wire and on every machine septet builds for.
std::uint32_t read_length(const std::byte* at) {
  std::uint32_t length = 0;
  std::memcpy(&length, at, kLengthBytes);
  return length;
}

template <typename OnElement>
bool for_each_element(std::span<const std::byte> bytes, OnElement&& on_element) {
  while (!bytes.empty()) {
    if (bytes.size() < kLengthBytes) {
      return false;
    }
    const std::size_t length = read_length(bytes.data());
    bytes = bytes.subspan(kLengthBytes);
    if (length > bytes.size()) {
      return false;
    }
    on_element(bytes.first(length));
    bytes = bytes.subspan(length);
  }
  return true;
}

std::optional<std::uint64_t> as_unsigned(const ParameterValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return *whole < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(*whole));
  }
  const auto* whole = std::get_if<std::uint64_t>(&value);
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

Status wrong_type(std::string_view name, std::string_view wanted) {
  return invalid_argument(
      fmt::format("attempting to access parameter '{}': expected {}", name, wanted));
}

Outcome<Ok> take_sequence_id(InferRequest& request, const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    request.sequence_id = *text;
    return Ok{};
  }
  const std::optional<std::uint64_t> number = as_unsigned(value);
  if (!number) {
    return wrong_type("sequence_id", "an unsigned integer or a string");
  }
  request.sequence_id = *number;
  return Ok{};
}

Outcome<Ok> take_flag(bool& to, std::string_view name, const ParameterValue& value) {
  const auto* flag = std::get_if<bool>(&value);
  if (flag == nullptr) {
    return wrong_type(name, "a boolean");
  }
  to = *flag;
  return Ok{};
}

Outcome<Ok> take_number(std::uint64_t& to, std::string_view name, const ParameterValue& value) {
  const std::optional<std::uint64_t> number = as_unsigned(value);
  if (!number) {
    return wrong_type(name, "an unsigned integer");
  }
  to = *number;
  return Ok{};
}

}  // namespace

std::string_view Blob::text() const {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Blob own_bytes(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return Blob{view, std::move(owner)};
}

Blob own_text(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const std::span view(reinterpret_cast<const std::byte*>(owner->data()), owner->size());
  return Blob{view, std::move(owner)};
}

bool InferRequest::in_sequence() const {
  if (const auto* number = std::get_if<std::uint64_t>(&sequence_id)) {
    return *number != 0;
  }
  return !std::get_if<std::string>(&sequence_id)->empty();
}

Outcome<Ok> apply_request_parameters(InferRequest& request, Parameters parameters) {
  for (auto& [name, value] : parameters) {
    if (name == "sequence_id") {
      SEPTET_TRY(take_sequence_id(request, value));
    } else if (name == "sequence_start") {
      SEPTET_TRY(take_flag(request.sequence_start, name, value));
    } else if (name == "sequence_end") {
      SEPTET_TRY(take_flag(request.sequence_end, name, value));
    } else if (name == "priority") {
      SEPTET_TRY(take_number(request.priority, name, value));
    } else if (name == "timeout") {
      SEPTET_TRY(take_number(request.timeout_us, name, value));
    } else if (name == "binary_data_output") {
      SEPTET_TRY(take_flag(request.binary_outputs, name, value));
    } else if (name == "triton_enable_empty_final_response") {
      SEPTET_TRY(take_flag(request.final_response_wanted, name, value));
    } else if (name == "headers" || name.starts_with("triton_")) {
      return invalid_argument(fmt::format(
          "parameter keys starting with 'triton_' are reserved for Triton usage: '{}'", name));
    } else {
      request.parameters.emplace(name, std::move(value));
    }
  }
  return Ok{};
}

std::optional<std::vector<std::string_view>> split_bytes_elements(
    std::span<const std::byte> bytes) {
  std::vector<std::string_view> elements;
  const bool whole = for_each_element(bytes, [&](std::span<const std::byte> element) {
    elements.emplace_back(reinterpret_cast<const char*>(element.data()), element.size());
  });
  return whole ? std::optional(std::move(elements)) : std::nullopt;
}

std::optional<std::uint64_t> count_bytes_elements(std::span<const std::byte> bytes) {
  std::uint64_t count = 0;
  const bool whole = for_each_element(bytes, [&](std::span<const std::byte>) { ++count; });
  return whole ? std::optional(count) : std::nullopt;
}

void append_bytes_element(std::vector<std::byte>& to, std::string_view element) {
  const auto length = static_cast<std::uint32_t>(element.size());
  const std::size_t at = to.size();
  to.resize(at + kLengthBytes + element.size());
  std::memcpy(to.data() + at, &length, kLengthBytes);
  if (!element.empty()) {
    std::memcpy(to.data() + at + kLengthBytes, element.data(), element.size());
  }
}

}  // namespace septet::inference
