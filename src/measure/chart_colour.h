// The colours of chart series: hues that can be told apart, shades of equal steps to the eye.
//
// Chosen in OKLCH (Ottosson, "A perceptual color space for image processing", 2020), so that a
// shade is as strong in every hue, and readable on a light and on a dark page. Pure.
#pragma once

#include <string>

namespace septet::measure {

enum class Theme { kLight, kDark };

// "#rrggbb". hue counts through the palette and starts again, below 0 it
// is grey; shade from 0 (faint) to 1 (strong).
std::string series_colour(int hue, double shade, Theme theme);

}  // namespace septet::measure
