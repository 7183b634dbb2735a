#include "partition/want.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace septet::partition {
namespace {

constexpr const char* kForms =
    "write 1g.5gb, 1g.5gb:7, 3g.20gb@4, 3g, 1g+me, >=10GB:2, >=2g or an id as 19 or 9:4";

Error bad_item(std::string_view item, std::string_view why) {
  return make_error(ErrorKind::kUsage, fmt::format("cannot read '{}' as a wish: {}", item, why),
                    kForms);
}

// ">=10GB" or ">=2g".
std::optional<ProfileSelector> parse_at_least(std::string_view text) {
  if (!text.starts_with(">=")) {
    return std::nullopt;
  }
  const std::string lower = to_lower(trim(text.substr(2)));
  const std::size_t unit = lower.find_first_not_of("0123456789");
  const auto number = parse_uint(std::string_view(lower).substr(0, unit));
  if (unit == std::string::npos || !number || *number == 0 || *number > 9999) {
    return std::nullopt;
  }
  ProfileSelector selector{.text = std::string(text)};
  const std::string_view name = trim(std::string_view(lower).substr(unit));
  if (name == "gb" || name == "gib") {
    selector.at_least_memory_gb = static_cast<unsigned>(*number);
    return selector;
  }
  if (name == "g" || name == "slices" || name == "slice") {
    selector.at_least_slices = static_cast<unsigned>(*number);
    return selector;
  }
  return std::nullopt;
}

Result<unsigned> parse_count(std::string_view text, std::string_view item) {
  const auto count = parse_uint(text);
  if (!count || *count == 0 || *count > kMostInstances) {
    return bad_item(item, fmt::format("'{}' is no count from 1 to {}", text, kMostInstances));
  }
  return static_cast<unsigned>(*count);
}

Result<unsigned> parse_start(std::string_view text, std::string_view item) {
  const auto start = parse_uint(text);
  if (!start || *start >= kMostInstances) {
    return bad_item(item, fmt::format("'{}' is no placement unit to start at", text));
  }
  return static_cast<unsigned>(*start);
}

enum class Colon { kCountsAfterName, kAlwaysStarts };

// "7x1g.5gb" -> 7 and the rest; an 'x' that does not follow digits is none of ours.
Result<Ok> take_leading_count(std::string_view& text, WantItem& item, std::string_view whole) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos ||
      (text[digits] != 'x' && text[digits] != '*')) {
    return Ok{};
  }
  auto count = parse_count(text.substr(0, digits), whole);
  SEPTET_TRY(count);
  item.count = *count;
  text.remove_prefix(digits + 1);
  return Ok{};
}

Result<WantItem> parse_item(std::string_view whole, Colon colon_rule) {
  WantItem item;
  std::string_view text = trim(whole);
  SEPTET_TRY(take_leading_count(text, item, whole));
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    auto start = parse_start(text.substr(at + 1), whole);
    SEPTET_TRY(start);
    item.start = *start;
    text = text.substr(0, at);
  }
  const std::size_t colon = text.find(':');
  auto selector = parse_profile_selector(text.substr(0, colon));
  SEPTET_TRY(selector);
  item.profile = *std::move(selector);
  if (colon == std::string_view::npos) {
    // nothing more to read
  } else if (colon_rule == Colon::kAlwaysStarts || item.profile.id) {
    auto start = parse_start(text.substr(colon + 1), whole);
    SEPTET_TRY(start);
    item.start = *start;
  } else {
    auto count = parse_count(text.substr(colon + 1), whole);
    SEPTET_TRY(count);
    item.count = *count;
  }
  if (item.start && item.count != 1) {
    return bad_item(whole, "one start cannot hold several instances");
  }
  return item;
}

// Attributes are separated by commas too: "1g.24gb+me,gfx" is one item when "gfx" is no profile.
std::vector<std::string> split_items(std::string_view word) {
  std::vector<std::string> items;
  for (const std::string_view piece : split(word, ',')) {
    const std::string text(trim(piece));
    const bool attribute = !text.empty() && text.find_first_of("0123456789>") != 0 &&
                           !to_lower(text).starts_with("mig ");
    if (attribute && !items.empty() && items.back().find_first_of("+-") != std::string::npos) {
      items.back() += "," + text;
    } else {
      items.push_back(text);
    }
  }
  return items;
}

Result<Ok> parse_word(std::string_view word, Colon colon_rule, Want& want) {
  for (const std::string& text : split_items(word)) {
    auto item = parse_item(text, colon_rule);
    SEPTET_TRY(item);
    want.items.push_back(*std::move(item));
  }
  return Ok{};
}

}  // namespace

Result<ProfileSelector> parse_profile_selector(std::string_view text) {
  text = trim(text);
  if (auto at_least = parse_at_least(text)) {
    return *std::move(at_least);
  }
  ProfileSelector selector{.text = std::string(text)};
  if (const auto id = parse_uint(text); id && *id <= 9999) {
    selector.id = gpu::ProfileId(static_cast<unsigned>(*id));
    return selector;
  }
  selector.name = parse_profile_name(text);
  if (!selector.name) {
    return bad_item(text, "it is no profile name, no id and no minimum");
  }
  return selector;
}

Result<Want> parse_want(std::span<const std::string> words) {
  Want want;
  for (const std::string& word : words) {
    for (const std::string_view piece : split(word, ' ')) {
      if (!trim(piece).empty() && !equal_ignoring_case(trim(piece), "mig")) {
        SEPTET_TRY(parse_word(piece, Colon::kCountsAfterName, want));
      }
    }
  }
  return want;
}

Result<Want> parse_nvidia_smi_list(std::string_view text) {
  Want want;
  SEPTET_TRY(parse_word(text, Colon::kAlwaysStarts, want));
  return want;
}

}  // namespace septet::partition
