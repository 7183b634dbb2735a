#include "inference/datatype.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace septet::inference {

namespace {

struct Row {
  Datatype datatype;
  std::string_view wire;
  std::size_t size;
};

// In the order of the enumeration's numbers.
constexpr std::array kRows = {
    Row{Datatype::kInvalid, "INVALID", 0}, Row{Datatype::kBool, "BOOL", 1},
    Row{Datatype::kUint8, "UINT8", 1},     Row{Datatype::kUint16, "UINT16", 2},
    Row{Datatype::kUint32, "UINT32", 4},   Row{Datatype::kUint64, "UINT64", 8},
    Row{Datatype::kInt8, "INT8", 1},       Row{Datatype::kInt16, "INT16", 2},
    Row{Datatype::kInt32, "INT32", 4},     Row{Datatype::kInt64, "INT64", 8},
    Row{Datatype::kFp16, "FP16", 2},       Row{Datatype::kFp32, "FP32", 4},
    Row{Datatype::kFp64, "FP64", 8},       Row{Datatype::kBytes, "BYTES", 0},
    Row{Datatype::kBf16, "BF16", 2},
};

const Row& row(Datatype datatype) { return kRows.at(static_cast<std::size_t>(datatype)); }

}  // namespace

std::string_view wire_name(Datatype datatype) { return row(datatype).wire; }

std::string config_name(Datatype datatype) {
  return datatype == Datatype::kBytes ? "TYPE_STRING" : fmt::format("TYPE_{}", wire_name(datatype));
}

Datatype datatype_from_wire(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.wire == name && candidate.datatype != Datatype::kInvalid) {
      return candidate.datatype;
    }
  }
  return Datatype::kInvalid;
}

std::size_t element_size(Datatype datatype) { return row(datatype).size; }

std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t count = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) {
      return std::nullopt;
    }
    const auto factor = static_cast<std::uint64_t>(dimension);
    if (factor != 0 && count > kMost / factor) {
      return std::nullopt;
    }
    count *= factor;
  }
  return count;
}

std::optional<std::uint64_t> byte_size(Datatype datatype, std::span<const std::int64_t> shape) {
  const std::optional<std::uint64_t> count = element_count(shape);
  const std::size_t size = element_size(datatype);
  if (!count || size == 0 ||
      *count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / size) {
    return std::nullopt;
  }
  return *count * size;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace septet::inference
