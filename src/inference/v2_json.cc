#include "inference/v2_json.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <type_traits>

namespace septet::inference::v2 {

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

Status wrong_element(std::string_view tensor, Datatype datatype) {
  return invalid_argument(
      fmt::format("Unable to parse 'data' of '{}': an element is not a {} or out of its range",
                  tensor, wire_name(datatype)));
}

Status wrong_count(std::string_view tensor, const Shape& shape) {
  return invalid_argument(
      fmt::format("Unable to parse 'data' of '{}': Shape does not match true shape of 'data' "
                  "field, shape is {}",
                  tensor, shape_text(shape)));
}

// Takes the scalars of a nested array in row-major order. Depth is bounded by the parser.
template <typename OnScalar>
bool walk(const simdjson::dom::array& items, const OnScalar& on_scalar) {
  for (const element item : items) {
    const bool good = item.type() == element_type::ARRAY
                          ? walk(item.get_array().value_unsafe(), on_scalar)
                          : on_scalar(item);
    if (!good) {
      return false;
    }
  }
  return true;
}

template <typename T>
bool read_scalar(const element& value, T& to) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.get(to) == simdjson::SUCCESS;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (value.type() == element_type::DOUBLE) {
      to = static_cast<T>(value.get_double().value_unsafe());
      return true;
    }
    double number = 0;  // of a whole number, unless it is no number at all
    if (value.get(number) != simdjson::SUCCESS) {
      return false;
    }
    to = static_cast<T>(number);
    return true;
  } else if constexpr (std::is_signed_v<T>) {
    std::int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number < std::numeric_limits<T>::min() ||
        number > std::numeric_limits<T>::max()) {
      return false;
    }
    to = static_cast<T>(number);
    return true;
  } else {
    std::uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number > std::numeric_limits<T>::max()) {
      return false;
    }
    to = static_cast<T>(number);
    return true;
  }
}

enum class Walked { kWhole, kWrongElement, kWrongCount };

// Reads elements, nested or not, in row-major order from `to` on and moves it behind them. Bodies
// of JSON numbers spend their time here: an element is tried as a number first, and as an array
// only when it is none; it is stored as what it is, not as bytes, which could be anything to the
// compiler.
template <typename T>
Walked fill(const simdjson::dom::array& items, T*& to, const T* end) {
  T* at = to;
  for (const element item : items) {
    T number{};
    if (read_scalar(item, number)) {
      if (at == end) {
        return Walked::kWrongCount;
      }
      *at++ = number;
      continue;
    }
    simdjson::dom::array nested;
    if (item.get(nested) != simdjson::SUCCESS) {
      return Walked::kWrongElement;
    }
    to = at;
    if (const Walked walked = fill<T>(nested, to, end); walked != Walked::kWhole) {
      return walked;
    }
    at = to;
  }
  to = at;
  return Walked::kWhole;
}

// All of them, into memory of their own. It is not filled with zeros first: every element is
// written, or the data is refused.
template <typename T>
Walked fill(const simdjson::dom::array& data, std::uint64_t count, Blob& to) {
  const auto numbers = std::make_shared_for_overwrite<T[]>(count);
  T* at = numbers.get();
  const T* end = numbers.get() + count;
  const Walked walked = fill<T>(data, at, end);
  to = Blob{std::as_bytes(std::span(numbers.get(), count)), numbers};
  return walked == Walked::kWhole && at != end ? Walked::kWrongCount : walked;
}

Walked fill_any(Datatype datatype, const simdjson::dom::array& data, std::uint64_t count,
                Blob& to) {
  switch (datatype) {
    case Datatype::kBool:
      return fill<bool>(data, count, to);
    case Datatype::kUint8:
      return fill<std::uint8_t>(data, count, to);
    case Datatype::kUint16:
      return fill<std::uint16_t>(data, count, to);
    case Datatype::kUint32:
      return fill<std::uint32_t>(data, count, to);
    case Datatype::kUint64:
      return fill<std::uint64_t>(data, count, to);
    case Datatype::kInt8:
      return fill<std::int8_t>(data, count, to);
    case Datatype::kInt16:
      return fill<std::int16_t>(data, count, to);
    case Datatype::kInt32:
      return fill<std::int32_t>(data, count, to);
    case Datatype::kInt64:
      return fill<std::int64_t>(data, count, to);
    case Datatype::kFp32:
      return fill<float>(data, count, to);
    case Datatype::kFp64:
      return fill<double>(data, count, to);
    case Datatype::kInvalid:
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kBytes:
      break;
  }
  return Walked::kWrongElement;
}

Outcome<Blob> strings_from_json(std::string_view tensor, const Shape& shape, std::uint64_t count,
                                const simdjson::dom::array& data) {
  std::vector<std::byte> bytes;
  std::uint64_t seen = 0;
  const bool good = walk(data, [&](const element& value) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) {
      return false;
    }
    ++seen;
    append_bytes_element(bytes, text);
    return true;
  });
  if (!good) {
    return wrong_element(tensor, Datatype::kBytes);
  }
  if (seen != count) {
    return wrong_count(tensor, shape);
  }
  return own_bytes(std::move(bytes));
}

template <typename T>
void write_all(JsonWriter& json, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T number{};
    std::memcpy(&number, bytes.data() + at, sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      json.value(number);
    } else if constexpr (std::is_signed_v<T>) {
      json.value(static_cast<std::int64_t>(number));
    } else {
      json.value(static_cast<std::uint64_t>(number));
    }
  }
}

Status no_json_form(std::string_view tensor, Datatype datatype) {
  return invalid_argument(fmt::format(
      "sending {} data via JSON is not supported: '{}'. Please use the binary data format",
      wire_name(datatype), tensor));
}

}  // namespace

Outcome<Blob> data_from_json(std::string_view tensor, Datatype datatype, const Shape& shape,
                             const element& data) {
  if (datatype == Datatype::kFp16 || datatype == Datatype::kBf16 ||
      datatype == Datatype::kInvalid) {
    return no_json_form(tensor, datatype);
  }
  simdjson::dom::array array;
  if (data.get(array) != simdjson::SUCCESS) {
    return invalid_argument(fmt::format("'data' of '{}' is not an array", tensor));
  }
  const std::optional<std::uint64_t> count = element_count(shape);
  // Each element takes a slot of the parsed document, so what is allocated here is bounded by the
  // size of the body, whatever the shape claims.
  if (!count || *count > array.number_of_slots()) {
    return wrong_count(tensor, shape);
  }
  if (datatype == Datatype::kBytes) {
    return strings_from_json(tensor, shape, *count, array);
  }
  Blob numbers;
  switch (fill_any(datatype, array, *count, numbers)) {
    case Walked::kWhole:
      return numbers;
    case Walked::kWrongCount:
      return wrong_count(tensor, shape);
    case Walked::kWrongElement:
      break;
  }
  return wrong_element(tensor, datatype);
}

Outcome<Ok> data_to_json(JsonWriter& json, std::string_view tensor, Datatype datatype,
                         std::span<const std::byte> bytes) {
  json.begin_array();
  switch (datatype) {
    case Datatype::kBool:
      for (const std::byte flag : bytes) {
        json.value(flag != std::byte{0});
      }
      break;
    case Datatype::kUint8:
      write_all<std::uint8_t>(json, bytes);
      break;
    case Datatype::kUint16:
      write_all<std::uint16_t>(json, bytes);
      break;
    case Datatype::kUint32:
      write_all<std::uint32_t>(json, bytes);
      break;
    case Datatype::kUint64:
      write_all<std::uint64_t>(json, bytes);
      break;
    case Datatype::kInt8:
      write_all<std::int8_t>(json, bytes);
      break;
    case Datatype::kInt16:
      write_all<std::int16_t>(json, bytes);
      break;
    case Datatype::kInt32:
      write_all<std::int32_t>(json, bytes);
      break;
    case Datatype::kInt64:
      write_all<std::int64_t>(json, bytes);
      break;
    case Datatype::kFp32:
      write_all<float>(json, bytes);
      break;
    case Datatype::kFp64:
      write_all<double>(json, bytes);
      break;
    case Datatype::kBytes: {
      const auto elements = split_bytes_elements(bytes);
      if (!elements) {
        return internal_error(fmt::format("'{}' holds a malformed BYTES element", tensor));
      }
      for (const std::string_view text : *elements) {
        json.value(text);
      }
      break;
    }
    case Datatype::kInvalid:
    case Datatype::kFp16:
    case Datatype::kBf16:
      return no_json_form(tensor, datatype);
  }
  json.end_array();
  return Ok{};
}

Outcome<Parameters> parameters_from_json(const element& value) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return invalid_argument("'parameters' is not an object");
  }
  Parameters parameters;
  for (const simdjson::dom::key_value_pair field : object) {
    ParameterValue& to = parameters[std::string(field.key)];
    switch (field.value.type()) {
      case element_type::BOOL:
        to = field.value.get_bool().value_unsafe();
        break;
      case element_type::INT64:
        to = field.value.get_int64().value_unsafe();
        break;
      case element_type::UINT64:
        to = field.value.get_uint64().value_unsafe();
        break;
      case element_type::DOUBLE:
        to = field.value.get_double().value_unsafe();
        break;
      case element_type::STRING:
        to = std::string(field.value.get_string().value_unsafe());
        break;
      case element_type::ARRAY:
      case element_type::OBJECT:
      case element_type::NULL_VALUE:
        return invalid_argument(
            fmt::format("parameter '{}' has invalid type. It should be either "
                        "'int', 'bool', 'double' or 'string'",
                        field.key));
    }
  }
  return parameters;
}

void parameters_to_json(JsonWriter& json, const Parameters& parameters) {
  json.begin_object();
  for (const auto& [name, value] : parameters) {
    json.key(name);
    std::visit([&](const auto& any) { json.value(any); }, value);
  }
  json.end_object();
}

Outcome<Shape> shape_from_json(std::string_view tensor, const element& value) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) {
    return invalid_argument(fmt::format("'shape' of '{}' is not an array", tensor));
  }
  Shape shape;
  shape.reserve(array.size());
  for (const element item : array) {
    std::int64_t dimension = 0;
    if (item.get(dimension) != simdjson::SUCCESS || dimension < 0) {
      return invalid_argument(
          fmt::format("'shape' of '{}' must hold whole numbers of 0 or more", tensor));
    }
    shape.push_back(dimension);
  }
  return shape;
}

}  // namespace septet::inference::v2
