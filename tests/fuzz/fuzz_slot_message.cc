// The message about a slot of shared memory, from a peer that may be hostile: what is accepted lies
// within its region and is written back as the same text.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "inference/slot_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace septet::inference;  // NOLINT: a fuzz target is all about one namespace
  const std::string_view value(reinterpret_cast<const char*>(data), size);
  if (const auto message = parse_slot_message(value)) {
    CHECK(message->region_bytes <= SlotMessage::kMostRegionBytes);
    CHECK(message->length >= 1 && message->length <= message->region_bytes);
    CHECK(message->offset <= message->region_bytes - message->length);
    std::string text;
    append_slot_message(text, *message);
    CHECK(text == value);
  }
  return 0;
}
