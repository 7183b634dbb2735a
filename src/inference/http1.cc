#include "inference/http1.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>

#include "base/check.h"
#include "base/text.h"

namespace septet::inference {

namespace {

namespace beast = boost::beast;

constexpr std::size_t kMaxChunkLineBytes = 4096;

std::string_view to_std(beast::string_view text) { return {text.data(), text.size()}; }

// Beast's grammar over one complete head; fills a HttpHead.
template <bool is_request>
class GrammarParser final : public beast::http::basic_parser<is_request> {
 public:
  GrammarParser(HttpHead& head, std::size_t head_bytes) : head_(head) {
    this->header_limit(static_cast<std::uint32_t>(head_bytes));
    this->body_limit(boost::none);
    this->skip(true);  // the body is ours
  }

 private:
  using Code = beast::error_code;
  using View = beast::string_view;

  void on_request_impl(beast::http::verb /*verb*/, View method, View target, int version,
                       Code& /*error*/) override {
    head_.method = to_std(method);
    head_.target = to_std(target);
    head_.minor_version = static_cast<unsigned>(version % 10);
  }
  void on_response_impl(int code, View /*reason*/, int version, Code& /*error*/) override {
    head_.status = static_cast<unsigned>(code);
    head_.minor_version = static_cast<unsigned>(version % 10);
  }
  void on_field_impl(beast::http::field /*field*/, View name, View value,
                     Code& /*error*/) override {
    head_.fields.push_back({to_std(name), to_std(value)});
  }
  void on_header_impl(Code& /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         Code& /*error*/) override {}
  std::size_t on_body_impl(View body, Code& /*error*/) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t /*size*/, View /*extensions*/, Code& /*error*/) override {
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, View body, Code& /*error*/) override {
    return body.size();
  }
  void on_finish_impl(Code& /*error*/) override {}

  HttpHead& head_;
};

HeadResult refuse(unsigned status, std::string reason) {
  HeadResult result;
  result.state = HeadResult::State::kRefused;
  result.status = status;
  result.reason = std::move(reason);
  return result;
}

// Whether a comma-separated field value lists the token.
bool lists_token(std::string_view value, std::string_view token) {
  for (const std::string_view piece : split(value, ',')) {
    if (equal_ignoring_case(trim(piece), token)) {
      return true;
    }
  }
  return false;
}

// What the fields say about framing and the connection, collected before it is judged.
struct FieldFacts {
  std::size_t lengths = 0;
  std::size_t encodings = 0;
  std::size_t hosts = 0;
  std::string_view length;
  std::string_view encoding;
  bool close = false;
  bool keep_alive = false;
};

FieldFacts collect_facts(HttpHead& head) {
  FieldFacts facts;
  for (const HttpField& field : head.fields) {
    // The length of the name decides first: most fields are none of these.
    switch (field.name.size()) {
      case 4:
        facts.hosts += equal_ignoring_case(field.name, "host") ? 1 : 0;
        break;
      case 6:
        head.expect_continue |= equal_ignoring_case(field.name, "expect") &&
                                equal_ignoring_case(field.value, "100-continue");
        break;
      case 10:
        if (equal_ignoring_case(field.name, "connection")) {
          facts.close |= lists_token(field.value, "close");
          facts.keep_alive |= lists_token(field.value, "keep-alive");
        }
        break;
      case 14:
        if (equal_ignoring_case(field.name, "content-length")) {
          ++facts.lengths;
          facts.length = field.value;
        }
        break;
      case 17:
        if (equal_ignoring_case(field.name, "transfer-encoding")) {
          ++facts.encodings;
          facts.encoding = field.value;
        }
        break;
      default:
        break;
    }
  }
  return facts;
}

// A tab behind a value is white space like a blank, but parsers in use take it for a part of the
// value: what the body's end hangs on must not be read in two ways. value lies within its line.
bool is_followed_by_tab(std::string_view value) {
  const char* at = value.data() + value.size();
  while (!value.empty() && *at == ' ') {
    ++at;
  }
  return !value.empty() && *at == '\t';
}

// Sets framing and keep-alive, or says why the head is refused.
std::optional<HeadResult> judge(HttpHead& head, bool is_request) {
  const FieldFacts facts = collect_facts(head);
  head.keep_alive = head.minor_version >= 1 ? !facts.close : facts.keep_alive && !facts.close;
  if (is_request && (facts.hosts > 1 || (facts.hosts == 0 && head.minor_version >= 1))) {
    return refuse(400, "the request needs exactly one Host field");
  }
  if (facts.lengths > 1 || facts.encodings > 1 || (facts.lengths > 0 && facts.encodings > 0)) {
    return refuse(400, "the length of the body is given more than once");
  }
  if ((facts.lengths > 0 && is_followed_by_tab(facts.length)) ||
      (facts.encodings > 0 && is_followed_by_tab(facts.encoding))) {
    return refuse(400, "a tab follows the length of the body");
  }
  if (facts.encodings > 0) {
    if (head.minor_version == 0) {
      return refuse(400, "Transfer-Encoding needs HTTP/1.1");
    }
    if (!equal_ignoring_case(facts.encoding, "chunked")) {
      return refuse(501, "only the transfer encoding 'chunked' is understood");
    }
    head.framing = BodyFraming::kChunked;
    return std::nullopt;
  }
  if (facts.lengths > 0) {
    const std::optional<std::uint64_t> length = parse_uint(facts.length);
    if (!length) {
      return refuse(400, "Content-Length is not a number");
    }
    head.framing = BodyFraming::kLength;
    head.content_length = *length;
    return std::nullopt;
  }
  head.framing = is_request ? BodyFraming::kNone : BodyFraming::kUntilClose;
  return std::nullopt;
}

// Lines that Beast would accept and others read differently: folded ones, and bare line feeds.
bool has_ambiguous_line(std::string_view head) {
  for (std::size_t at = head.find('\n'); at != std::string_view::npos;
       at = head.find('\n', at + 1)) {
    if (at == 0 || head[at - 1] != '\r') {
      return true;
    }
    if (at + 1 < head.size() && (head[at + 1] == ' ' || head[at + 1] == '\t')) {
      return true;
    }
  }
  return false;
}

// Whether a trailer line has a field name of token characters (RFC 9110 5.6.2) and a colon.
bool is_field_line(std::string_view line) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) {
    return false;
  }
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

template <bool is_request>
HeadResult parse_extent(std::string_view bytes, const HttpLimits& limits, HttpHead& head) {
  head.clear();
  if (has_ambiguous_line(bytes)) {
    return refuse(400, "a header line is folded or ends in a bare line feed");
  }
  GrammarParser<is_request> grammar(head, bytes.size());
  beast::error_code error;
  grammar.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error && error != beast::http::error::need_more) {
    const bool version = error == beast::http::error::bad_version;
    return refuse(version ? 505 : 400, "malformed HTTP: " + error.message());
  }
  if (!grammar.is_header_done()) {
    return refuse(400, "malformed HTTP head");
  }
  if (head.fields.size() > limits.max_fields) {
    return refuse(431, "too many header fields");
  }
  if (std::optional<HeadResult> refusal = judge(head, is_request)) {
    return *std::move(refusal);
  }
  HeadResult result;
  result.state = HeadResult::State::kComplete;
  return result;
}

}  // namespace

std::optional<std::string_view> HttpHead::find(std::string_view name) const {
  for (const HttpField& field : fields) {
    if (field.name.size() == name.size() && equal_ignoring_case(field.name, name)) {
      return field.value;
    }
  }
  return std::nullopt;
}

void HttpHead::clear() {
  std::vector<HttpField> kept = std::move(fields);
  *this = HttpHead{};
  fields = std::move(kept);
  fields.clear();
}

HttpHeadParser::Extent HttpHeadParser::find_extent(std::string_view buffer, bool skip_empty_lines,
                                                   HeadResult& refusal) {
  std::size_t begin = 0;
  while (skip_empty_lines && buffer.substr(begin, 2) == "\r\n") {
    begin += 2;
  }
  const std::size_t from = std::max(begin, searched_ < 3 ? 0 : searched_ - 3);
  const std::size_t end = buffer.find("\r\n\r\n", from);
  const std::size_t length = end == std::string_view::npos ? buffer.size() : end + 4;
  if (length > limits_.max_head_bytes) {
    refusal = refuse(
        431, "the header is larger than " + std::to_string(limits_.max_head_bytes) + " bytes");
    return {HeadResult::State::kRefused, begin, length};
  }
  if (end == std::string_view::npos) {
    searched_ = buffer.size();
    return {HeadResult::State::kIncomplete, begin, length};
  }
  searched_ = 0;
  return {HeadResult::State::kComplete, begin, length};
}

HeadResult HttpHeadParser::parse_request(std::string_view buffer, HttpHead& head) {
  HeadResult result;
  const Extent extent = find_extent(buffer, true, result);
  if (extent.state != HeadResult::State::kComplete) {
    result.state = extent.state;
    return result;
  }
  result =
      parse_extent<true>(buffer.substr(extent.begin, extent.end - extent.begin), limits_, head);
  result.head_bytes = extent.end;
  return result;
}

HeadResult HttpHeadParser::parse_response(std::string_view buffer, HttpHead& head, bool to_head) {
  HeadResult result;
  const Extent extent = find_extent(buffer, false, result);
  if (extent.state != HeadResult::State::kComplete) {
    result.state = extent.state;
    return result;
  }
  result = parse_extent<false>(buffer.substr(0, extent.end), limits_, head);
  result.head_bytes = extent.end;
  const bool bodiless =
      to_head || head.status / 100 == 1 || head.status == 204 || head.status == 304;
  if (bodiless) {
    head.framing = BodyFraming::kNone;
    head.content_length = 0;
  }
  return result;
}

bool ChunkedDecoder::take_size_digit(char c) {
  unsigned digit = 0;
  const auto [end, error] = std::from_chars(&c, &c + 1, digit, 16);
  if (error != std::errc() || end != &c + 1 || ++digits_ > 15) {
    return false;
  }
  left_ = left_ * 16 + digit;
  return true;
}

bool ChunkedDecoder::take_trailer(char c) {
  trailer_line_.push_back(c);
  if (c != '\n') {
    return true;
  }
  const bool is_last = trailer_line_ == "\r\n";
  const bool is_field = trailer_line_.ends_with("\r\n") && is_field_line(trailer_line_);
  if (is_last) {
    state_ = State::kDone;
  }
  trailer_line_.clear();
  return is_last || is_field;
}

bool ChunkedDecoder::take(char c) {
  switch (state_) {
    case State::kSize:
      if (digits_ > 0 && (c == '\r' || c == ';')) {
        state_ = c == '\r' ? State::kSizeEnd : State::kExtension;
        return true;
      }
      return take_size_digit(c);
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeEnd;
      }
      return c != '\n' && ++line_bytes_ <= kMaxChunkLineBytes;
    case State::kSizeEnd:
      state_ = left_ > 0 ? State::kData : State::kTrailer;
      digits_ = 0;
      line_bytes_ = 0;
      return c == '\n';
    case State::kDataEnd:
      state_ = State::kDataEndLf;
      return c == '\r';
    case State::kDataEndLf:
      state_ = State::kSize;
      return c == '\n';
    case State::kTrailer:
      return ++line_bytes_ <= kMaxChunkLineBytes && take_trailer(c);
    case State::kData:
    case State::kDone:
      break;
  }
  return true;
}

ChunkedDecoder::Step ChunkedDecoder::feed(std::string_view input) {
  Step step;
  while (step.consumed < input.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      step.data = input.substr(step.consumed, std::min<std::uint64_t>(left_, input.size()));
      step.consumed += step.data.size();
      left_ -= step.data.size();
      if (left_ == 0) {
        state_ = State::kDataEnd;
      }
      return step;
    }
    if (!take(input[step.consumed++])) {
      step.bad = true;
      return step;
    }
  }
  step.done = state_ == State::kDone;
  return step;
}

std::string_view reason_phrase(unsigned status) {
  return to_std(beast::http::obsolete_reason(static_cast<beast::http::status>(status)));
}

void append_status_line(std::string& out, unsigned status) {
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ");
  out.append(reason_phrase(status)).append("\r\n");
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  CHECK(name.find_first_of("\r\n:") == std::string_view::npos);
  CHECK(value.find_first_of("\r\n") == std::string_view::npos);
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_field(std::string& out, std::string_view name, std::uint64_t value) {
  append_field(out, name, std::string_view(std::to_string(value)));
}

}  // namespace septet::inference
