// Picture and its way into a tensor, bit for bit as Triton's image_client does it.
//
// resize, scaling and layout follow OpenCV 4's 8-bit arithmetic, so that the bytes sent equal the
// official client's (perf_tool facts, 5.1; checked by digests). Pure; values, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inference/datatype.h"

namespace septet::measure {

// 8 bits a channel, interleaved, rows from the top: RGB (3 channels) or grey (1).
struct Picture {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels{};  // width x height x channels

  bool operator==(const Picture&) const = default;
};

// The eight ways a camera can be held, as EXIF numbers them (1 = upright, 2..8).
Picture turned_upright(const Picture& picture, int exif_orientation);

// 0.299 R + 0.587 G + 0.114 B in 15-bit fixed point, as OpenCV 4.
Picture to_grey(const Picture& rgb);

// Bilinear, aspect not kept, not smoothed. Width and height > 0. The same picture if it fits.
Picture resized(const Picture& picture, int width, int height);

enum class Scaling {
  kNone,       // 0..255
  kInception,  // x / 127.5 - 1
  kVgg,        // minus 123, 117, 104 (R, G, B), or minus 128 for grey
};

enum class PixelLayout { kNchw, kNhwc };

// What a model wants to see.
struct ImageInput {
  inference::Datatype datatype = inference::Datatype::kFp32;
  PixelLayout layout = PixelLayout::kNchw;
  int channels = 3;  // 1 or 3
  int width = 0;
  int height = 0;
};

// The bytes of one tensor without the batch dimension. Integer types saturate and round half to
// even, as OpenCV does. kFailed for BOOL and BYTES, which are no pictures.
Result<std::vector<std::byte>> preprocess(const Picture& rgb, const ImageInput& input,
                                          Scaling scaling);

}  // namespace septet::measure
