#include "measure/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace septet::measure {
namespace {

using inference::Datatype;

constexpr int kWeightBits = 11;  // OpenCV's INTER_RESIZE_COEF_BITS

std::size_t index(int value) { return static_cast<std::size_t>(value); }

// Where one value of the result comes from: two neighbours and their fixed-point weights.
struct Tap {
  int first = 0;
  int second = 0;
  int first_weight = 0;
  int second_weight = 0;
};

enum class Edge {
  kMoveWeight,    // horizontal: outside, the nearest pixel counts alone
  kClampIndices,  // vertical: both row numbers are clamped, the weights stay
};

std::vector<Tap> taps_of(int source, int target, Edge edge) {
  const double scale = static_cast<double>(source) / target;
  std::vector<Tap> taps(index(target));
  for (int i = 0; i < target; ++i) {
    float fraction = static_cast<float>((i + 0.5) * scale - 0.5);
    int at = static_cast<int>(std::floor(fraction));
    fraction -= static_cast<float>(at);
    if (edge == Edge::kMoveWeight && (at < 0 || at >= source - 1)) {
      at = at < 0 ? 0 : source - 1;
      fraction = 0;
    }
    Tap& tap = taps[index(i)];
    tap.first = std::clamp(at, 0, source - 1);
    tap.second = std::clamp(at + 1, 0, source - 1);
    constexpr float kOne = 1 << kWeightBits;
    tap.first_weight = static_cast<int>(std::nearbyint((1.F - fraction) * kOne));
    tap.second_weight = static_cast<int>(std::nearbyint(fraction * kOne));
  }
  return taps;
}

// One source row, resized horizontally, with kWeightBits fractional bits.
std::vector<int> resized_row(const Picture& picture, int row, const std::vector<Tap>& taps) {
  const std::size_t channels = index(picture.channels);
  const std::uint8_t* source = picture.pixels.data() + index(row) * index(picture.width) * channels;
  std::vector<int> out;
  out.reserve(taps.size() * channels);
  for (const Tap& tap : taps) {
    for (std::size_t c = 0; c < channels; ++c) {
      out.push_back(source[index(tap.first) * channels + c] * tap.first_weight +
                    source[index(tap.second) * channels + c] * tap.second_weight);
    }
  }
  return out;
}

double scaled(std::uint8_t value, int channel, int channels, Scaling scaling) {
  constexpr std::array kVggMeans = {123.0, 117.0, 104.0};
  switch (scaling) {
    case Scaling::kNone:
      return value;
    case Scaling::kInception:
      return value * (1 / 127.5);
    case Scaling::kVgg:
      return value - (channels == 1 ? 128.0 : kVggMeans.at(index(channel)));
  }
  return value;
}

// Rounds half to even and stays within the type, as OpenCV's saturate_cast.
template <typename T>
T saturated(double value) {
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = static_cast<double>(std::numeric_limits<T>::max());
  const double rounded = std::nearbyint(value);
  if (rounded <= low) {
    return std::numeric_limits<T>::min();
  }
  return rounded >= high ? std::numeric_limits<T>::max() : static_cast<T>(rounded);
}

// One pixel's channel as a model's value. INCEPTION's subtraction is a step of its own: OpenCV
// stores the product in the type before.
template <typename T>
T value_of(std::uint8_t pixel, int channel, int channels, Scaling scaling) {
  const double value = scaled(pixel, channel, channels, scaling);
  if constexpr (std::is_floating_point_v<T>) {
    const T product = static_cast<T>(value);
    return scaling == Scaling::kInception ? product - T{1} : product;
  } else {
    const T product = saturated<T>(value);
    return scaling == Scaling::kInception ? saturated<T>(static_cast<double>(product) - 1)
                                          : product;
  }
}

// IEEE 754 half precision, rounded to nearest even; the values here are neither huge nor NaN.
std::uint16_t to_half(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const int exponent = static_cast<int>((bits >> 23U) & 0xFFU) - 127 + 15;
  if (exponent <= 0) {
    const double steps = std::nearbyint(std::abs(static_cast<double>(value)) * 0x1p24);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(steps));
  }
  const std::uint32_t mantissa = bits & 0x7FFFFFU;
  const std::uint32_t half = (static_cast<std::uint32_t>(exponent) << 10U) | (mantissa >> 13U);
  const std::uint32_t rest = mantissa & 0x1FFFU;
  const std::uint32_t up = rest > 0x1000U || (rest == 0x1000U && (half & 1U) != 0) ? 1 : 0;
  return static_cast<std::uint16_t>(sign | (half + up));
}

std::uint16_t to_bfloat(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounding = 0x7FFFU + ((bits >> 16U) & 1U);
  return static_cast<std::uint16_t>((bits + rounding) >> 16U);
}

// Where channel c of pixel p goes.
std::size_t place_of(std::size_t p, std::size_t c, std::size_t pixels, std::size_t channels,
                     PixelLayout layout) {
  return layout == PixelLayout::kNchw ? c * pixels + p : p * channels + c;
}

template <typename T, typename Convert>
std::vector<std::byte> written(const Picture& picture, PixelLayout layout, Convert convert) {
  const std::size_t channels = index(picture.channels);
  const std::size_t pixels = picture.pixels.size() / channels;
  std::vector<std::byte> out(picture.pixels.size() * sizeof(T));
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t c = 0; c < channels; ++c) {
      const T value = convert(picture.pixels[p * channels + c], static_cast<int>(c));
      std::memcpy(out.data() + place_of(p, c, pixels, channels, layout) * sizeof(T), &value,
                  sizeof(T));
    }
  }
  return out;
}

template <typename T>
std::vector<std::byte> written_as(const Picture& picture, PixelLayout layout, Scaling scaling) {
  return written<T>(picture, layout, [&](std::uint8_t pixel, int channel) {
    return value_of<T>(pixel, channel, picture.channels, scaling);
  });
}

template <typename Convert>
std::vector<std::byte> written_short(const Picture& picture, PixelLayout layout, Scaling scaling,
                                     Convert convert) {
  return written<std::uint16_t>(picture, layout, [&](std::uint8_t pixel, int channel) {
    return convert(value_of<float>(pixel, channel, picture.channels, scaling));
  });
}

}  // namespace

Picture turned_upright(const Picture& picture, int exif_orientation) {
  if (exif_orientation < 2 || exif_orientation > 8) {
    return picture;
  }
  const bool sideways = exif_orientation >= 5;
  Picture out{.width = sideways ? picture.height : picture.width,
              .height = sideways ? picture.width : picture.height,
              .channels = picture.channels,
              .pixels = std::vector<std::uint8_t>(picture.pixels.size())};
  const int right = picture.width - 1;
  const int bottom = picture.height - 1;
  const std::size_t channels = index(picture.channels);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      // Which pixel of the stored picture stands at (x, y) of the upright one.
      const std::array<std::pair<int, int>, 7> sources = {{{right - x, y},
                                                           {right - x, bottom - y},
                                                           {x, bottom - y},
                                                           {y, x},
                                                           {y, bottom - x},
                                                           {right - y, bottom - x},
                                                           {right - y, x}}};
      const auto [from_x, from_y] = sources.at(index(exif_orientation - 2));
      const std::size_t from = (index(from_y) * index(picture.width) + index(from_x)) * channels;
      const std::size_t to = (index(y) * index(out.width) + index(x)) * channels;
      std::copy_n(picture.pixels.begin() + static_cast<std::ptrdiff_t>(from), channels,
                  out.pixels.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
  return out;
}

Picture to_grey(const Picture& rgb) {
  CHECK(rgb.channels == 3);
  constexpr unsigned kBits = 15;
  Picture grey{.width = rgb.width, .height = rgb.height, .channels = 1};
  grey.pixels.reserve(rgb.pixels.size() / 3);
  for (std::size_t at = 0; at + 2 < rgb.pixels.size(); at += 3) {
    const std::uint8_t* pixel = rgb.pixels.data() + at;
    const unsigned sum = 9798U * pixel[0] + 19235U * pixel[1] + 3735U * pixel[2];
    grey.pixels.push_back(static_cast<std::uint8_t>((sum + (1U << (kBits - 1))) >> kBits));
  }
  return grey;
}

Picture resized(const Picture& picture, int width, int height) {
  CHECK(width > 0 && height > 0 && picture.width > 0 && picture.height > 0);
  if (picture.width == width && picture.height == height) {
    return picture;
  }
  const std::vector<Tap> columns = taps_of(picture.width, width, Edge::kMoveWeight);
  const std::vector<Tap> rows = taps_of(picture.height, height, Edge::kClampIndices);
  Picture out{.width = width, .height = height, .channels = picture.channels};
  out.pixels.reserve(index(width) * index(height) * index(picture.channels));
  std::vector<std::vector<int>> done(index(picture.height));  // source rows, resized when needed
  for (const Tap& tap : rows) {
    for (const int row : {tap.first, tap.second}) {
      if (done[index(row)].empty()) {
        done[index(row)] = resized_row(picture, row, columns);
      }
    }
    const std::vector<int>& first = done[index(tap.first)];
    const std::vector<int>& second = done[index(tap.second)];
    for (std::size_t i = 0; i < first.size(); ++i) {
      const int sum = ((tap.first_weight * (first[i] >> 4)) >> 16) +
                      ((tap.second_weight * (second[i] >> 4)) >> 16) + 2;
      out.pixels.push_back(static_cast<std::uint8_t>(std::clamp(sum >> 2, 0, 255)));
    }
  }
  return out;
}

Result<std::vector<std::byte>> preprocess(const Picture& rgb, const ImageInput& input,
                                          Scaling scaling) {
  const Picture picture =
      resized(input.channels == 1 ? to_grey(rgb) : rgb, input.width, input.height);
  const PixelLayout layout = input.layout;
  switch (input.datatype) {
    case Datatype::kUint8:
      return written_as<std::uint8_t>(picture, layout, scaling);
    case Datatype::kInt8:
      return written_as<std::int8_t>(picture, layout, scaling);
    case Datatype::kUint16:
      return written_as<std::uint16_t>(picture, layout, scaling);
    case Datatype::kInt16:
      return written_as<std::int16_t>(picture, layout, scaling);
    case Datatype::kUint32:
      return written_as<std::uint32_t>(picture, layout, scaling);
    case Datatype::kInt32:
      return written_as<std::int32_t>(picture, layout, scaling);
    case Datatype::kUint64:
      return written_as<std::uint64_t>(picture, layout, scaling);
    case Datatype::kInt64:
      return written_as<std::int64_t>(picture, layout, scaling);
    case Datatype::kFp16:
      return written_short(picture, layout, scaling, to_half);
    case Datatype::kBf16:
      return written_short(picture, layout, scaling, to_bfloat);
    case Datatype::kFp32:
      return written_as<float>(picture, layout, scaling);
    case Datatype::kFp64:
      return written_as<double>(picture, layout, scaling);
    case Datatype::kBool:
    case Datatype::kBytes:
    case Datatype::kInvalid:
      break;
  }
  return make_error(ErrorKind::kFailed,
                    fmt::format("a picture cannot be sent as {}", wire_name(input.datatype)),
                    "the model must take whole numbers or floating point");
}

}  // namespace septet::measure
