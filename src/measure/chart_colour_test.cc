#include "measure/chart_colour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace septet::measure {
namespace {

// Relative luminance of "#rrggbb" (WCAG 2.1).
double luminance(const std::string& colour) {
  const auto part = [&](std::size_t at) {
    const double coded = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return coded <= 0.04045 ? coded / 12.92 : std::pow((coded + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

double contrast(double a, double b) { return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05); }

TEST(SeriesColour, StandsOutFromItsBackground) {
  const double dark_page = luminance("#16181d");
  for (int hue = 0; hue < 6; ++hue) {
    for (const double shade : {0.0, 0.5, 1.0}) {
      EXPECT_GT(contrast(luminance(series_colour(hue, shade, Theme::kLight)), 1.0), 1.9);
      EXPECT_GT(contrast(luminance(series_colour(hue, shade, Theme::kDark)), dark_page), 3.0);
    }
  }
}

TEST(SeriesColour, GetsStrongerWithItsShade) {
  for (int hue = 0; hue < 6; ++hue) {
    EXPECT_GT(luminance(series_colour(hue, 0, Theme::kLight)),
              luminance(series_colour(hue, 1, Theme::kLight)));
    EXPECT_LT(luminance(series_colour(hue, 0, Theme::kDark)),
              luminance(series_colour(hue, 1, Theme::kDark)));
  }
}

TEST(SeriesColour, DiffersBetweenHuesAndSevenShades) {
  std::set<std::string> seen;
  for (int hue = 0; hue < 6; ++hue) {
    for (int shade = 0; shade < 7; ++shade) {
      seen.insert(series_colour(hue, shade / 6.0, Theme::kLight));
    }
  }

  EXPECT_EQ(seen.size(), 42U);
}

}  // namespace
}  // namespace septet::measure
