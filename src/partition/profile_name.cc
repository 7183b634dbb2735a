#include "partition/profile_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace septet::partition {
namespace {

constexpr unsigned kMostInName = 9999;  // no slice count or memory size is near this

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<unsigned> number_before(std::string_view field, std::string_view suffix) {
  if (!field.ends_with(suffix)) {
    return std::nullopt;
  }
  const std::optional<std::uint64_t> number =
      parse_uint(field.substr(0, field.size() - suffix.size()));
  if (!number || *number == 0 || *number > kMostInName) {
    return std::nullopt;
  }
  return static_cast<unsigned>(*number);
}

bool is_attribute(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && text.back() != '.' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
}

bool parse_attributes(std::string_view text, ProfileName& name) {
  name.sign = text.front();
  for (const std::string_view attribute : split(text.substr(1), ',')) {
    if (!is_attribute(attribute)) {
      return false;
    }
    name.attributes.emplace_back(attribute);
  }
  std::sort(name.attributes.begin(), name.attributes.end());
  return std::adjacent_find(name.attributes.begin(), name.attributes.end()) ==
         name.attributes.end();
}

bool parse_fields(std::vector<std::string_view> fields, ProfileName& name) {
  if (const auto compute = number_before(fields.front(), "c")) {
    name.compute_slices = compute;
    fields.erase(fields.begin());
  }
  if (fields.empty() || fields.size() > 2) {
    return false;
  }
  const auto slices = number_before(fields[0], "g");
  if (!slices || (name.compute_slices && *name.compute_slices > *slices)) {
    return false;
  }
  name.slices = *slices;
  if (fields.size() == 2) {
    name.memory_gb = number_before(fields[1], "gb");
  }
  return fields.size() == 1 || name.memory_gb.has_value();
}

}  // namespace

std::optional<ProfileName> parse_profile_name(std::string_view text) {
  std::string lower = to_lower(trim(text));
  std::string_view rest = lower;
  if (rest.starts_with("mig ")) {
    rest = trim(rest.substr(4));
  }
  ProfileName name;
  const std::size_t sign = rest.find_first_of("+-");
  if (sign != std::string_view::npos && !parse_attributes(rest.substr(sign), name)) {
    return std::nullopt;
  }
  if (!parse_fields(split(rest.substr(0, sign), '.'), name)) {
    return std::nullopt;
  }
  return name;
}

std::string to_string(const ProfileName& name) {
  std::string text;
  if (name.compute_slices && *name.compute_slices != name.slices) {
    text = fmt::format("{}c.", *name.compute_slices);
  }
  text += fmt::format("{}g", name.slices);
  if (name.memory_gb) {
    text += fmt::format(".{}gb", *name.memory_gb);
  }
  if (!name.attributes.empty()) {
    text += name.sign + fmt::format("{}", fmt::join(name.attributes, ","));
  }
  return text;
}

}  // namespace septet::partition
