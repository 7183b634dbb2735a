#include "measure/edge/grpc_message.h"

#include <zlib.h>

#include <algorithm>

#include "base/check.h"

namespace septet::measure {

namespace {

constexpr std::size_t kPrefixBytes = 5;

std::string with_prefix(char compressed, std::string_view bytes) {
  std::string framed(kPrefixBytes, '\0');
  framed[0] = compressed;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) {
    framed[i] = static_cast<char>(bytes.size() >> (8 * (kPrefixBytes - 1 - i)) & 0xFFU);
  }
  return framed += bytes;
}

std::string compressed(std::string_view bytes, MessageCompression compression) {
  constexpr int kZlibWindow = 15;
  constexpr int kGzipWindow = kZlibWindow + 16;  // zlib's sign for a gzip head
  z_stream stream{};
  CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     compression == MessageCompression::kGzip ? kGzipWindow : kZlibWindow, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace

std::string framed_message(std::string_view protobuf) { return with_prefix(0, protobuf); }

const char* to_string(MessageCompression compression) {
  switch (compression) {
    case MessageCompression::kNone:
      return "identity";
    case MessageCompression::kGzip:
      return "gzip";
    case MessageCompression::kDeflate:
      return "deflate";
  }
  return "";
}

std::string framed_message(std::string_view protobuf, MessageCompression compression) {
  return compression == MessageCompression::kNone
             ? framed_message(protobuf)
             : with_prefix(1, compressed(protobuf, compression));
}

unsigned http_status_of_grpc(unsigned code) {
  switch (code) {
    case 0:
      return 200;
    case 3:   // INVALID_ARGUMENT
    case 6:   // ALREADY_EXISTS
    case 9:   // FAILED_PRECONDITION
    case 11:  // OUT_OF_RANGE
      return 400;
    case 5:  // NOT_FOUND
      return 404;
    case 7:   // PERMISSION_DENIED
    case 16:  // UNAUTHENTICATED
      return 403;
    case 8:   // RESOURCE_EXHAUSTED
    case 14:  // UNAVAILABLE
      return 503;
    case 12:  // UNIMPLEMENTED
      return 501;
    default:
      return 500;
  }
}

std::optional<std::string_view> stream_error(std::string_view message) {
  constexpr char kErrorTag = 0x0A;  // field 1, length-delimited
  if (message.size() < 2 || message[0] != kErrorTag) {
    return std::nullopt;
  }
  std::size_t at = 1;
  while (at < message.size() && (static_cast<std::uint8_t>(message[at]) & 0x80U) != 0) {
    ++at;  // the length, of which the end is not needed
  }
  return message.substr(std::min(at + 1, message.size()));
}

void GrpcMessageReader::start(std::size_t kept_bytes) {
  kept_bytes_ = kept_bytes;
  prefix_.clear();
  left_ = 0;
  done_ = false;
  text_.clear();
}

void GrpcMessageReader::take(std::string_view bytes) {
  if (prefix_.size() < kPrefixBytes) {
    const std::size_t part = std::min(kPrefixBytes - prefix_.size(), bytes.size());
    prefix_ += bytes.substr(0, part);
    bytes.remove_prefix(part);
    if (prefix_.size() < kPrefixBytes) {
      return;
    }
    for (std::size_t i = 1; i < kPrefixBytes; ++i) {
      left_ = left_ << 8U | static_cast<std::uint8_t>(prefix_[i]);
    }
  }
  const std::size_t part = std::min<std::uint64_t>(left_, bytes.size());
  text_ += bytes.substr(0, std::min(part, kept_bytes_ - std::min(kept_bytes_, text_.size())));
  left_ -= part;
  done_ = left_ == 0;
}

}  // namespace septet::measure
