// HTTP/1.1 without I/O: message heads, chunked bodies, heads to write.
//
// A head is parsed in place: every view points into the buffer handed in and lives as long as its
// bytes do. What may be read in two ways is refused, never repaired (RFC 9112, request smuggling):
// two lengths, length and chunked, folded lines, bare line feeds, blanks before a colon, a missing
// or repeated Host. Owned by one connection, used by its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace septet::inference {

struct HttpLimits {
  std::size_t max_head_bytes = 16 * 1024;
  std::size_t max_fields = 100;
};

struct HttpField {
  std::string_view name;
  std::string_view value;  // without blanks around it
};

// How the end of a body is found.
enum class BodyFraming { kNone, kLength, kChunked, kUntilClose };

struct HttpHead {
  std::string_view method;  // requests
  std::string_view target;
  unsigned status = 0;  // responses
  unsigned minor_version = 1;
  std::vector<HttpField> fields;  // in the order received
  BodyFraming framing = BodyFraming::kNone;
  std::uint64_t content_length = 0;  // with kLength
  bool keep_alive = true;
  bool expect_continue = false;

  // The value of the first field of that name, any case; nothing if there is none.
  std::optional<std::string_view> find(std::string_view name) const;
  // Empty again, its memory kept.
  void clear();
};

struct HeadResult {
  enum class State { kIncomplete, kComplete, kRefused };
  State state = State::kIncomplete;
  std::size_t head_bytes = 0;  // complete: where the body begins
  unsigned status = 0;         // refused: the response status to send (400, 431, 501, 505)
  std::string reason;          // refused: one line for people
};

class HttpHeadParser {
 public:
  explicit HttpHeadParser(HttpLimits limits = {}) : limits_(limits) {}

  // Parses the head at the front of the buffer. While incomplete, call again with the same bytes
  // and more behind them (the buffer may have moved); the search for the end goes on where it was.
  // Empty lines before a request line are skipped, as RFC 9112 2.2 asks.
  HeadResult parse_request(std::string_view buffer, HttpHead& head);
  // to_head: whether the response answers a HEAD request, so has no body.
  HeadResult parse_response(std::string_view buffer, HttpHead& head, bool to_head = false);

 private:
  struct Extent {
    HeadResult::State state;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Extent find_extent(std::string_view buffer, bool skip_empty_lines, HeadResult& refusal);

  HttpLimits limits_;
  std::size_t searched_ = 0;
};

// Takes a chunked body apart as it comes.
//
//   size CRLF data CRLF size CRLF data CRLF 0 CRLF trailers CRLF
class ChunkedDecoder {
 public:
  struct Step {
    std::size_t consumed = 0;  // bytes of the input that are done with
    std::string_view data;     // body bytes among them, a view into the input
    bool done = false;         // the body is complete
    bool bad = false;          // not a chunked body
  };
  // Call until consumed covers the input, or done, or bad.
  Step feed(std::string_view input);

 private:
  enum class State { kSize, kExtension, kSizeEnd, kData, kDataEnd, kDataEndLf, kTrailer, kDone };
  bool take(char c);
  bool take_size_digit(char c);
  bool take_trailer(char c);

  State state_ = State::kSize;
  std::uint64_t left_ = 0;
  unsigned digits_ = 0;
  std::size_t line_bytes_ = 0;  // of an extension or of all trailers, both bounded
  std::string trailer_line_;
};

// The phrase that goes with a status; "Unknown" where there is none.
std::string_view reason_phrase(unsigned status);

// Appends "HTTP/1.1 STATUS PHRASE" and a line end.
void append_status_line(std::string& out, unsigned status);
// Appends one field line. Name and value must not hold line ends (CHECK).
void append_field(std::string& out, std::string_view name, std::string_view value);
void append_field(std::string& out, std::string_view name, std::uint64_t value);

}  // namespace septet::inference
