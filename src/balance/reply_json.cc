#include "balance/reply_json.h"

#include <algorithm>
#include <cstdint>

namespace septet::balance {

using Json = nlohmann::ordered_json;

namespace {

// Statistics are five deep, model configs a little more; a replica that nests further is sick.
constexpr int kMaxDepth = 16;

void add_tree(Json& into, const Json& from);

// Equal batch sizes, whatever their type; none equals nothing.
bool same_batch(const Json& a, const Json& b) {
  return a.is_object() && b.is_object() && a.contains("batch_size") && b.contains("batch_size") &&
         a["batch_size"] == b["batch_size"];
}

void add_batches(Json& into, const Json& from) {
  for (const Json& batch : from) {
    const auto same = std::find_if(into.begin(), into.end(), [&batch](const Json& candidate) {
      return same_batch(candidate, batch);
    });
    if (same == into.end()) {
      into.push_back(batch);
    } else {
      add_tree(*same, batch);
    }
  }
}

void add_tree(Json& into, const Json& from) {
  for (const auto& [key, value] : from.items()) {
    Json& target = into[key];
    const bool numbers = value.is_number_unsigned() && target.is_number_unsigned();
    if (target.is_null()) {
      target = value;
    } else if (key == "batch_size") {
      continue;
    } else if (key == "last_inference" && numbers) {
      target = std::max(target.get<std::uint64_t>(), value.get<std::uint64_t>());
    } else if (key == "batch_stats" && value.is_array() && target.is_array()) {
      add_batches(target, value);
    } else if (numbers) {
      target = target.get<std::uint64_t>() + value.get<std::uint64_t>();
    } else if (value.is_object() && target.is_object()) {
      add_tree(target, value);
    }
  }
}

}  // namespace

Json parse_reply(std::string_view text) {
  const auto shallow = [](int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
    return depth <= kMaxDepth;
  };
  return Json::parse(text, shallow, false);
}

void add_counters(Json& into, const Json& from) {
  if (into.is_object() && from.is_object()) {
    add_tree(into, from);
  }
}

}  // namespace septet::balance
