#include "balance/forwarded_head.h"

#include <array>
#include <charconv>

#include "base/text.h"
#include "inference/v2_codec.h"

namespace septet::balance {

using inference::HttpField;
using inference::HttpHead;

namespace {

void append_number(std::string& out, std::uint64_t value) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_length(std::string& out, std::uint64_t bytes) {
  out += "Content-Length: ";
  append_number(out, bytes);
  out += "\r\n";
}

bool is_named_by(std::string_view connection, std::string_view name) {
  for (std::string_view piece : split(connection, ',')) {
    if (equal_ignoring_case(trim(piece), name)) {
      return true;
    }
  }
  return false;
}

// Whether a field ends at this hop, or is written anew.
bool stays_here(std::string_view name) {
  switch (name.size()) {
    case 2:
      return equal_ignoring_case(name, "te");
    case 6:
      return equal_ignoring_case(name, "expect");
    case 7:
      return equal_ignoring_case(name, "trailer") || equal_ignoring_case(name, "upgrade");
    case inference::kSlotField.size():
    case inference::kSlotsField.size():
      return inference::is_slot_field(name);
    case 10:
      return equal_ignoring_case(name, "connection") || equal_ignoring_case(name, "keep-alive");
    case 14:
      return equal_ignoring_case(name, "content-length");
    case 16:
      return equal_ignoring_case(name, "proxy-connection");
    case 17:
      return equal_ignoring_case(name, "transfer-encoding") || inference::is_slot_field(name);
    default:
      return false;
  }
}

// Calls the function with every field that does not end at this hop.
template <typename Function>
void each_passed_on(const HttpHead& head, Function function) {
  // What Connection names beyond the two usual words; rare.
  std::string_view connection = head.find("connection").value_or("");
  if (equal_ignoring_case(connection, "keep-alive") || equal_ignoring_case(connection, "close")) {
    connection = {};
  }
  for (const HttpField& field : head.fields) {
    if (stays_here(field.name) || (!connection.empty() && is_named_by(connection, field.name))) {
      continue;
    }
    function(field);
  }
}

// All but one of that name; a name that no field has leaves out none.
void append_fields(std::string& out, const HttpHead& head, std::string_view left_out) {
  each_passed_on(head, [&](const HttpField& field) {
    if (!equal_ignoring_case(field.name, left_out)) {
      append_line(out, field.name, field.value);
    }
  });
}

// The length that a reply without a body has all the same: that to HEAD; 204 and 304 may have none.
std::optional<std::string_view> length_without_body(const HttpHead& head) {
  return head.status / 100 == 2 && head.status != 204 ? head.find("content-length") : std::nullopt;
}

void append_request_fields(std::string& out, const HttpHead& head, std::string_view left_out = {}) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  if (head.minor_version == 0 && !head.find("host")) {
    out += "Host: localhost\r\n";
  }
  append_fields(out, head, left_out);
}

void append_status(std::string& out, unsigned status) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
  } else {
    inference::append_status_line(out, status);
  }
}

void append_connection(std::string& out, ClientConnectionEnds ends) {
  if (ends == ClientConnectionEnds::kYes) {
    out += "Connection: close\r\n";
  }
}

}  // namespace

void append_request_head(std::string& out, const HttpHead& head,
                         std::optional<std::uint64_t> body_bytes) {
  append_request_fields(out, head);
  if (body_bytes) {
    append_length(out, *body_bytes);
  }
  out += "\r\n";
}

void append_slot_request_head(std::string& out, const HttpHead& head,
                              const inference::SlotMessage& slot) {
  append_request_fields(out, head);
  out.append(inference::kSlotField).append(": ");
  append_slot_message(out, slot);
  out += "\r\nContent-Length: 0\r\n\r\n";
}

void append_json_request_head(std::string& out, const HttpHead& head, std::uint64_t body_bytes) {
  append_request_fields(out, head, inference::kJsonLengthHeader);
  append_length(out, body_bytes);
  out += "\r\n";
}

void append_reply_head(std::string& out, const HttpHead& head, unsigned minor_version,
                       ClientConnectionEnds ends) {
  append_status(out, head.status);
  append_fields(out, head, {});
  switch (head.framing) {
    case inference::BodyFraming::kLength:
      append_length(out, head.content_length);
      break;
    case inference::BodyFraming::kChunked:
      if (minor_version >= 1) {
        out += "Transfer-Encoding: chunked\r\n";
      }
      break;
    case inference::BodyFraming::kNone:
      if (const auto length = length_without_body(head)) {
        append_line(out, "Content-Length", *length);
      }
      break;
    case inference::BodyFraming::kUntilClose:
      break;
  }
  append_connection(out, ends);
  if (minor_version == 0 && ends == ClientConnectionEnds::kNo) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void append_reply_fields(FieldList& out, const HttpHead& head) {
  out.add(":status", std::to_string(head.status));
  each_passed_on(head,
                 [&out](const HttpField& field) { out.add(to_lower(field.name), field.value); });
  if (head.framing == inference::BodyFraming::kLength) {
    out.add("content-length", std::to_string(head.content_length));
  } else if (head.framing == inference::BodyFraming::kNone) {
    if (const auto length = length_without_body(head)) {
      out.add("content-length", *length);
    }
  }
}

void append_own_fields(FieldList& out, const OwnReply& reply) {
  out.add(":status", std::to_string(reply.status));
  out.add("content-type", reply.content_type);
  if (reply.status == 503) {
    out.add("retry-after", "1");
  }
  out.add("content-length", std::to_string(reply.body.size()));
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_own_reply(std::string& out, const OwnReply& reply, ClientConnectionEnds ends) {
  append_status(out, reply.status);
  append_line(out, "Content-Type", reply.content_type);
  if (reply.status == 503) {
    out += "Retry-After: 1\r\n";
  }
  append_length(out, reply.body.size());
  append_connection(out, ends);
  out += "\r\n";
  out += reply.to_head ? std::string_view{} : reply.body;
}

std::string error_body(std::string_view text) {
  std::string body = "{\"error\":";
  append_json_string(body, text);
  return body + "}";
}

}  // namespace septet::balance
