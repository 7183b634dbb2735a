// The fields of an HTTP/2 request as the head that HTTP/1.1 would have brought.
//
//   :method, :path -> request line      cookie, cookie, ... -> one cookie (RFC 9113 8.2.3)
//   :authority     -> Host              all others          -> as they are
//
// What a replica could take for something else is refused, never repaired (RFC
// 9113 8.2, 8.3, 10.3): pseudo-fields that are missing, repeated, unknown or late, names in upper
// case, fields of a connection, control characters, blanks around a value, two lengths, a Host that
// is not the authority. Pure; nothing is kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "balance/field_list.h"
#include "inference/http1.h"

namespace septet::balance {

// Fills the head with views into the fields, and into memory for cookies. The length of a body is
// open (kChunked) where none is said. The reason why it is refused, or nothing.
std::optional<std::string_view> read_http2_head(const FieldList& fields, std::string& memory,
                                                inference::HttpHead& head);

}  // namespace septet::balance
