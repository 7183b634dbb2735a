#include "serve/edge/body_compression.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "inference/v2_codec.h"

namespace septet::serve {

using inference::Blob;
using inference::kBodyPadding;
using inference::Outcome;

namespace {

constexpr int kAutoDetect = MAX_WBITS + 32;  // gzip or zlib, told apart by the head
constexpr int kGzipWindow = MAX_WBITS + 16;
constexpr std::size_t kFirstBytes = 64 * 1024;

unsigned char* writable(const void* data) {
  return static_cast<unsigned char*>(const_cast<void*>(data));
}

}  // namespace

Outcome<Blob> decompress_body(std::span<const std::byte> body, std::uint64_t limit) {
  z_stream stream{};
  CHECK(::inflateInit2(&stream, kAutoDetect) == Z_OK);
  std::vector<std::byte> plain(std::min<std::size_t>(limit + 1, kFirstBytes));
  stream.next_in = writable(body.data());
  stream.avail_in = static_cast<uInt>(body.size());
  std::size_t written = 0;
  int state = Z_OK;
  while (state == Z_OK && written <= limit) {
    if (written == plain.size()) {
      plain.resize(std::min<std::size_t>(plain.size() * 2, limit + 1));
    }
    const std::size_t room = std::min<std::size_t>(plain.size() - written, UINT32_MAX);
    stream.next_out = writable(plain.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = ::inflate(&stream, Z_NO_FLUSH);
    written += room - stream.avail_out;
    if (state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      break;  // the input ended too early
    }
  }
  ::inflateEnd(&stream);
  if (written > limit) {
    return inference::invalid_argument(
        fmt::format("request body is over the limit of {} bytes once decompressed", limit));
  }
  if (state != Z_STREAM_END) {
    return inference::invalid_argument("the compressed request body is damaged");
  }
  plain.resize(written + kBodyPadding);
  Blob blob = inference::own_bytes(std::move(plain));
  blob.bytes = blob.bytes.first(written);
  return blob;
}

std::optional<BodyEncoding> parse_content_encoding(std::string_view value) {
  const std::string name = to_lower(trim(value));
  if (name.empty() || name == "identity") {
    return BodyEncoding::kIdentity;
  }
  if (name == "gzip") {
    return BodyEncoding::kGzip;
  }
  return name == "deflate" ? std::optional(BodyEncoding::kDeflate) : std::nullopt;
}

BodyEncoding choose_encoding(std::string_view accept_encoding) {
  BodyEncoding chosen = BodyEncoding::kIdentity;
  for (const std::string_view part : split(accept_encoding, ',')) {
    const std::size_t semicolon = part.find(';');
    const std::string_view quality =
        semicolon == std::string_view::npos ? "" : trim(part.substr(semicolon + 1));
    if (quality == "q=0" || quality == "q=0.0") {
      continue;
    }
    const auto encoding = parse_content_encoding(part.substr(0, semicolon));
    if (encoding == BodyEncoding::kGzip) {
      return BodyEncoding::kGzip;
    }
    if (encoding == BodyEncoding::kDeflate) {
      chosen = BodyEncoding::kDeflate;
    }
  }
  return chosen;
}

void compress_response(HttpResponse& response, BodyEncoding encoding) {
  if (encoding == BodyEncoding::kIdentity) {
    return;
  }
  z_stream stream{};
  const int window = encoding == BodyEncoding::kGzip ? kGzipWindow : MAX_WBITS;
  constexpr int kMemoryLevel = 8;  // zlib's own default
  CHECK(::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window, kMemoryLevel,
                       Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed;
  const auto add = [&](const void* data, std::size_t size, int flush) {
    stream.next_in = writable(data);
    stream.avail_in = static_cast<uInt>(size);
    do {
      const std::size_t at = packed.size();
      packed.resize(at + kFirstBytes);
      stream.next_out = reinterpret_cast<unsigned char*>(packed.data() + at);
      stream.avail_out = static_cast<uInt>(kFirstBytes);
      ::deflate(&stream, flush);
      packed.resize(at + kFirstBytes - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  add(response.body.data(), response.body.size(), Z_NO_FLUSH);
  for (const Blob& piece : response.pieces) {
    add(piece.bytes.data(), piece.size(), Z_NO_FLUSH);
  }
  add(nullptr, 0, Z_FINISH);
  ::deflateEnd(&stream);
  response.body = std::move(packed);
  response.pieces.clear();
  response.fields.emplace_back("Content-Encoding",
                               encoding == BodyEncoding::kGzip ? "gzip" : "deflate");
}

}  // namespace septet::serve
