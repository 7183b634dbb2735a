// Heads as the proxy writes them: a request passed on, a reply passed back, an error of its own;
// for HTTP/1.1 as text, for HTTP/2 as a list of fields.
//
// Pure; appended to a string whose memory is kept. Fields that belong to one connection only
// (RFC 9110 7.6.1) are left out: Connection and what it names, Keep-Alive, Proxy-Connection, TE,
// Trailer, Transfer-Encoding, Upgrade, Expect, and those of the slots between proxy and replica;
// lengths are written anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "balance/field_list.h"
#include "inference/http1.h"
#include "inference/slot_message.h"

namespace septet::balance {

// The head for a replica. body_bytes: the whole body's length; nothing = the request has no body.
void append_request_head(std::string& out, const inference::HttpHead& head,
                         std::optional<std::uint64_t> body_bytes);

// The same for a replica that finds the body in a slot.
void append_slot_request_head(std::string& out, const inference::HttpHead& head,
                              const inference::SlotMessage& slot);

// The same for a replica that gets the request as JSON alone: without the JSON's length.
void append_json_request_head(std::string& out, const inference::HttpHead& head,
                              std::uint64_t body_bytes);

enum class ClientConnectionEnds { kNo, kYes };

// The head for the client, framed as the replica framed it.
void append_reply_head(std::string& out, const inference::HttpHead& head, unsigned minor_version,
                       ClientConnectionEnds ends);

// A whole reply of the proxy itself; 503 carries Retry-After.
struct OwnReply {
  unsigned status = 200;
  std::string_view content_type = "application/json";
  std::string_view body{};
  bool to_head = false;  // it answers HEAD: of its body only the length is said
};
void append_own_reply(std::string& out, const OwnReply& reply, ClientConnectionEnds ends);

// The same heads, and an own reply's without its body, as HTTP/2 has them: names in lower case.
void append_reply_fields(FieldList& out, const inference::HttpHead& head);
void append_own_fields(FieldList& out, const OwnReply& reply);

// The text as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);
// The protocol's error body {"error":"text"}.
std::string error_body(std::string_view text);

}  // namespace septet::balance
