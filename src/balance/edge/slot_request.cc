#include "balance/edge/slot_request.h"

#include "balance/forwarded_head.h"
#include "balance/shared_request.h"
#include "base/text.h"
#include "inference/v2_codec.h"

namespace septet::balance {

namespace {

// The region's name as replicas know it: its key without the slash.
std::string_view name_of(const os::NamedMemory& region) {
  return std::string_view(region.key()).substr(1);
}

bool append_named(Exchange& exchange, const inference::HttpHead& head,
                  const os::NamedMemory& region, std::size_t offset) {
  const auto json_bytes = parse_uint(head.find(inference::kJsonLengthHeader).value_or(""));
  if (!json_bytes || *json_bytes > exchange.body.size()) {
    return false;
  }
  exchange.slot_json.clear();
  if (!append_shared_request(
          exchange.slot_json, exchange.body.substr(0, *json_bytes),
          {name_of(region), offset + *json_bytes, exchange.body.size() - *json_bytes})) {
    return false;
  }
  append_json_request_head(exchange.slot_head, head, exchange.slot_json.size());
  exchange.slot_head += exchange.slot_json;
  return true;
}

}  // namespace

void put_slot(Exchange& exchange, const inference::HttpHead& head, const Body& slot,
              std::size_t at) {
  const std::size_t offset = slot.offset() + at;
  exchange.slot_head.clear();
  if (const os::NamedMemory* const region = slot.pool().named_region()) {
    exchange.slot = append_named(exchange, head, *region, offset) ? &slot : nullptr;
    return;
  }
  exchange.slot = &slot;
  append_slot_request_head(exchange.slot_head, head,
                           {slot.pool().region_bytes(), offset, exchange.body.size()});
}

}  // namespace septet::balance
