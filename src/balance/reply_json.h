// JSON from replicas, which may be sick: parsed within bounds, statistics added up.
//
// Shared by the merges of balance; the documents are those of the protocol (facts: 1.6).
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace septet::balance {

// The document, or a discarded value when it is none. What is nested deeper than the protocol's
// documents are is dropped, so that copying a document never exhausts the stack.
nlohmann::ordered_json parse_reply(std::string_view text);

// Adds every counter in one tree to its place in the other: names and versions stay, batch_stats
// are joined by batch_size, last_inference becomes the latest.
void add_counters(nlohmann::ordered_json& into, const nlohmann::ordered_json& from);

}  // namespace septet::balance
