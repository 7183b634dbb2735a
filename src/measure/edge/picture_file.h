// Picture files: JPEG, PNG, PNM (binary) and BMP, decoded to 8-bit RGB as OpenCV's imread does.
//
// EXIF orientation of JPEG is applied, alpha is dropped, CMYK is converted. Free functions; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "measure/picture.h"

namespace septet::measure {

// Decodes a file's bytes; name is used in messages. kFailed: "unable to decode image NAME".
Result<Picture> decode_picture(std::string_view bytes, const std::string& name);

// kFailed: "unable to read image file PATH" or as above.
Result<Picture> read_picture(const std::string& path);

}  // namespace septet::measure
