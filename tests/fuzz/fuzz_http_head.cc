// HTTP/1.1 request heads against a second parser: what ours accepts, http-parser must read the same
// way. Ours may refuse more; that is its purpose.
#include <http_parser.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "inference/http1.h"

namespace {

struct Seen {
  std::string target;
  bool headers_complete = false;
  std::uint64_t content_length = 0;
  bool chunked = false;
  std::string method;
};

int on_url(http_parser* parser, const char* at, std::size_t length) {
  static_cast<Seen*>(parser->data)->target.append(at, length);
  return 0;
}

int on_headers_complete(http_parser* parser) {
  Seen& seen = *static_cast<Seen*>(parser->data);
  seen.headers_complete = true;
  seen.chunked = (parser->flags & F_CHUNKED) != 0;
  seen.content_length = parser->content_length == UINT64_MAX ? 0 : parser->content_length;
  seen.method = http_method_str(static_cast<http_method>(parser->method));
  return 2;  // no body is looked for
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace septet::inference;  // NOLINT: a fuzz target is all about one namespace
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  HttpHeadParser parser;
  HttpHead head;
  const HeadResult result = parser.parse_request(input, head);
  if (result.state != HeadResult::State::kComplete) {
    CHECK(result.state == HeadResult::State::kIncomplete || result.status >= 400);
    return 0;
  }
  CHECK(result.head_bytes <= size);
  Seen seen;
  http_parser other;
  http_parser_init(&other, HTTP_REQUEST);
  other.data = &seen;
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_url = on_url;
  settings.on_headers_complete = on_headers_complete;
  http_parser_execute(&other, &settings, input.data(), result.head_bytes);
  if (HTTP_PARSER_ERRNO(&other) == HPE_INVALID_METHOD ||
      HTTP_PARSER_ERRNO(&other) == HPE_INVALID_URL ||
      HTTP_PARSER_ERRNO(&other) == HPE_UNEXPECTED_CONTENT_LENGTH) {
    return 0;  // it knows a fixed list of methods and its own rules for targets
  }
  CHECK(seen.headers_complete);
  CHECK(seen.method == head.method);
  CHECK(seen.target == head.target);
  CHECK(seen.chunked == (head.framing == BodyFraming::kChunked));
  CHECK(seen.content_length == head.content_length);
  return 0;
}
