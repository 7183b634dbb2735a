#include "serve/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace septet::serve {

using inference::Datatype;
using inference::Outcome;
using inference::OutputTensor;

namespace {

template <typename T>
T element_at(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Appends the k best of count elements that begin at first.
template <typename T>
void append_best(std::vector<std::byte>& to, std::span<const std::byte> bytes, std::size_t first,
                 std::size_t count, std::size_t k, const Labels& labels) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto value = [&](std::size_t index) { return element_at<T>(bytes, first + index); };
  // NaN compares false with everything, which is no order; it counts as the smallest.
  const auto before = [&](std::size_t a, std::size_t b) {
    const T x = value(a);
    const T y = value(b);
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x || y != y) {
        return x == x ? true : (y == y ? false : a < b);
      }
    }
    return x != y ? x > y : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                    before);
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t index = order[i];
    std::string text;
    if constexpr (std::is_floating_point_v<T>) {
      text = fmt::format("{:f}:{}", value(index), index);
    } else {
      text = fmt::format("{}:{}", value(index), index);
    }
    if (index < labels.size()) {
      text += ':';
      text += labels[index];
    }
    inference::append_bytes_element(to, text);
  }
}

using Append = void (*)(std::vector<std::byte>&, std::span<const std::byte>, std::size_t,
                        std::size_t, std::size_t, const Labels&);

Append appender(Datatype datatype) {
  switch (datatype) {
    case Datatype::kUint8:
      return append_best<std::uint8_t>;
    case Datatype::kUint16:
      return append_best<std::uint16_t>;
    case Datatype::kUint32:
      return append_best<std::uint32_t>;
    case Datatype::kUint64:
      return append_best<std::uint64_t>;
    case Datatype::kInt8:
      return append_best<std::int8_t>;
    case Datatype::kInt16:
      return append_best<std::int16_t>;
    case Datatype::kInt32:
      return append_best<std::int32_t>;
    case Datatype::kInt64:
      return append_best<std::int64_t>;
    case Datatype::kFp32:
      return append_best<float>;
    case Datatype::kFp64:
      return append_best<double>;
    case Datatype::kInvalid:
    case Datatype::kBool:
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kBytes:
      break;
  }
  return nullptr;
}

}  // namespace

Outcome<OutputTensor> classify_output(const OutputTensor& output, std::uint32_t k, bool batched,
                                      const Labels& labels) {
  const Append append = appender(output.datatype);
  if (append == nullptr) {
    return inference::invalid_argument(
        fmt::format("class result not available for output '{}' due to unsupported type '{}'",
                    output.name, wire_name(output.datatype)));
  }
  const std::size_t total = output.data.size() / inference::element_size(output.datatype);
  const std::size_t batch =
      batched && !output.shape.empty() ? static_cast<std::size_t>(output.shape.front()) : 1;
  const std::size_t each = batch == 0 ? 0 : total / batch;
  const std::size_t count = std::min<std::size_t>(k, each);
  std::vector<std::byte> bytes;
  for (std::size_t entry = 0; entry < batch; ++entry) {
    append(bytes, output.data.bytes, entry * each, each, count, labels);
  }
  OutputTensor strings{.name = output.name, .datatype = Datatype::kBytes, .form = output.form};
  if (batched) {
    strings.shape.push_back(static_cast<std::int64_t>(batch));
  }
  strings.shape.push_back(static_cast<std::int64_t>(count));
  strings.data = inference::own_bytes(std::move(bytes));
  return strings;
}

Labels parse_labels(std::string_view text) {
  Labels labels;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    labels.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return labels;
}

}  // namespace septet::serve
