#include "balance/http2_head.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace septet::balance {

using inference::BodyFraming;
using inference::HttpHead;

namespace {

using Reason = std::optional<std::string_view>;

// Of field names and methods (RFC 9110 5.6.2); names have no upper case (RFC 9113 8.2.1).
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool has_upper_case(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_value(std::string_view text) {
  const bool framed = !text.empty() && (is_blank(text.front()) || is_blank(text.back()));
  return !framed &&
         std::none_of(text.begin(), text.end(), [](char c) { return is_control(c) && c != '\t'; });
}

// Of a request line, or a host.
bool is_word(std::string_view text) {
  return !text.empty() &&
         std::none_of(text.begin(), text.end(), [](char c) { return is_control(c) || c == ' '; });
}

bool is_of_connection(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {
      "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

class Reader {
 public:
  Reader(std::string& memory, HttpHead& head) : memory_(memory), head_(head) {
    memory_.clear();
    head_.clear();
    head_.framing = BodyFraming::kChunked;
  }

  void take(const FieldList::Field& field) {
    if (!reason_) {
      reason_ = field.name.starts_with(':') ? pseudo(field) : regular(field);
    }
  }

  Reason finish() {
    if (reason_) {
      return reason_;
    }
    if (!is_token(head_.method) || !is_word(head_.target) || scheme_.empty()) {
      return "the request needs :method, :scheme and :path";
    }
    if (authority_.empty()) {
      authority_ = host_;
    }
    if (!is_word(authority_) || authority_.find('@') != std::string_view::npos ||
        (!host_.empty() && !equal_ignoring_case(host_, authority_))) {
      return "the request needs one :authority, and a Host only if it says the same";
    }
    place_for_host();
    head_.fields.front().value = authority_;
    if (cookies_ > 0) {
      head_.fields[cookie_at_].value = cookies_ > 1 ? std::string_view(memory_) : cookie_;
    }
    return std::nullopt;
  }

 private:
  Reason pseudo(const FieldList::Field& field) {
    std::string_view* const place = field.name == ":method"      ? &head_.method
                                    : field.name == ":path"      ? &head_.target
                                    : field.name == ":scheme"    ? &scheme_
                                    : field.name == ":authority" ? &authority_
                                                                 : nullptr;
    if (place == nullptr || !place->empty() || field.value.empty() || !head_.fields.empty()) {
      return "a pseudo-field is unknown, repeated, empty or late";
    }
    *place = field.value;
    return std::nullopt;
  }

  Reason regular(const FieldList::Field& field) {
    place_for_host();
    if (!is_token(field.name) || has_upper_case(field.name) || !is_value(field.value)) {
      return "a field's name or value is malformed";
    }
    if (is_of_connection(field.name) || (field.name == "te" && field.value != "trailers")) {
      return "a field that belongs to a connection has no place in HTTP/2";
    }
    if (field.name == "host") {
      const bool again = !host_.empty() || field.value.empty();
      host_ = field.value;
      return again ? Reason("the request needs exactly one Host field") : std::nullopt;
    }
    if (field.name == "cookie") {
      take_cookie(field);
      return std::nullopt;
    }
    head_.fields.push_back({field.name, field.value});
    head_.expect_continue |=
        field.name == "expect" && equal_ignoring_case(field.value, "100-continue");
    return field.name == "content-length" ? length(field.value) : std::nullopt;
  }

  // The first of the fields; what it says is known at the end.
  void place_for_host() {
    if (head_.fields.empty()) {
      head_.fields.push_back({"Host", {}});
    }
  }

  Reason length(std::string_view value) {
    const std::optional<std::uint64_t> length = parse_uint(value);
    if (!length || head_.framing == BodyFraming::kLength) {
      return "content-length is no number, or repeated";
    }
    head_.framing = BodyFraming::kLength;
    head_.content_length = *length;
    return std::nullopt;
  }

  void take_cookie(const FieldList::Field& field) {
    if (cookies_++ == 0) {
      cookie_at_ = head_.fields.size();
      cookie_ = field.value;
      head_.fields.push_back({field.name, {}});
      return;
    }
    if (cookies_ == 2) {
      memory_ = cookie_;
    }
    memory_.append("; ").append(field.value);
  }

  std::string& memory_;
  HttpHead& head_;
  Reason reason_;
  std::string_view scheme_;
  std::string_view authority_;
  std::string_view host_;
  std::string_view cookie_;  // the first
  std::size_t cookie_at_ = 0;
  std::size_t cookies_ = 0;
};

}  // namespace

std::optional<std::string_view> read_http2_head(const FieldList& fields, std::string& memory,
                                                HttpHead& head) {
  Reader reader(memory, head);
  fields.each([&reader](const FieldList::Field& field) { reader.take(field); });
  return reader.finish();
}

}  // namespace septet::balance
