#include "measure/chart_colour.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace septet::measure {
namespace {

struct Rgb {
  double red = 0;
  double green = 0;
  double blue = 0;

  bool displayable() const {
    const auto fits = [](double part) { return part >= -1e-6 && part <= 1 + 1e-6; };
    return fits(red) && fits(green) && fits(blue);
  }
};

// OKLCH to linear sRGB, with Ottosson's matrices.
Rgb to_linear_rgb(double lightness, double chroma, double hue_degrees) {
  const double angle = hue_degrees * std::numbers::pi / 180;
  const double a = chroma * std::cos(angle);
  const double b = chroma * std::sin(angle);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

int to_byte(double linear) {
  const double part = std::clamp(linear, 0.0, 1.0);
  const double coded = part <= 0.0031308 ? 12.92 * part : 1.055 * std::pow(part, 1 / 2.4) - 0.055;
  return static_cast<int>(std::lround(coded * 255));
}

// Blue, orange, green, magenta, cyan, red: neighbours differ also for the colour-blind.
constexpr std::array kHues = {258.0, 55.0, 150.0, 330.0, 205.0, 25.0};

}  // namespace

std::string series_colour(int hue, double shade, Theme theme) {
  const double strength = std::clamp(shade, 0.0, 1.0);
  const double angle = kHues.at(static_cast<std::size_t>(std::max(hue, 0)) % kHues.size());
  const double lightness = theme == Theme::kLight ? 0.76 - 0.34 * strength : 0.54 + 0.29 * strength;
  // The strongest colour of this lightness that a screen can show.
  double chroma = hue < 0 ? 0 : 0.17;
  Rgb colour = to_linear_rgb(lightness, chroma, angle);
  while (!colour.displayable() && chroma > 0) {
    chroma -= 0.005;
    colour = to_linear_rgb(lightness, chroma, angle);
  }
  return fmt::format("#{:02x}{:02x}{:02x}", to_byte(colour.red), to_byte(colour.green),
                     to_byte(colour.blue));
}

}  // namespace septet::measure
