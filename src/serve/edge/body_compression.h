// Compressed HTTP bodies: gzip and deflate (inference protocol, 1.2). Wraps zlib.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "inference/tensor.h"
#include "serve/edge/http_server.h"

namespace septet::serve {

// The body behind a Content-Encoding, with kBodyPadding readable bytes behind it.
// kInvalidArgument when it is damaged or would grow over limit bytes.
inference::Outcome<inference::Blob> decompress_body(std::span<const std::byte> body,
                                                    std::uint64_t limit);

enum class BodyEncoding { kIdentity, kGzip, kDeflate };
// What a Content-Encoding names; nothing for one that is not known.
std::optional<BodyEncoding> parse_content_encoding(std::string_view value);
// The best of what an Accept-Encoding allows; identity when it names neither of the two.
BodyEncoding choose_encoding(std::string_view accept_encoding);

// Replaces body and pieces by one compressed body and adds Content-Encoding.
void compress_response(HttpResponse& response, BodyEncoding encoding);

}  // namespace septet::serve
