#include "partition/time_slice.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace septet::partition {

namespace {

constexpr std::array kLengths = {SliceLength::kDefault, SliceLength::kShort, SliceLength::kMedium,
                                 SliceLength::kLong};

}  // namespace

std::vector<CommandLine> time_slice_commands(const std::string& gpu_uuid, SliceLength length) {
  return {{"-i", gpu_uuid, "-c", "DEFAULT"},
          {"compute-policy", "-i", gpu_uuid,
           fmt::format("--set-timeslice={}", static_cast<int>(length))}};
}

CommandLine list_time_slice_command(const std::string& gpu_uuid) {
  return {"compute-policy", "-i", gpu_uuid, "-l"};
}

std::optional<SliceLength> parse_slice_length(std::string_view word) {
  for (const SliceLength length : kLengths) {
    if (equal_ignoring_case(word, to_string(length))) {
      return length;
    }
  }
  return std::nullopt;
}

std::optional<SliceLength> listed_slice_length(std::string_view table) {
  for (const std::string_view line : split(table, '\n')) {
    bool is_time_slice = false;
    for (const std::string_view word : split(line, ' ')) {
      if (is_time_slice) {
        if (const auto length = parse_slice_length(trim(word))) {
          return length;
        }
      }
      is_time_slice = is_time_slice || equal_ignoring_case(word, "timeslice");
    }
  }
  return std::nullopt;
}

}  // namespace septet::partition
