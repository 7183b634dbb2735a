// A Chart as SVG: inside a page, where the page's style colours it, or as a file of its own.
//
//   +---------------------------------------------+
//   | title                                       |
//   | subtitle                                    |
//   |  y label                                    |
//   |  30 |- - - - - - - - - - - - -     |        |
//   |     |            __----o-----o     | 7 x MIG|   names stand at the ends of their lines,
//   |  15 |- - - -o--- - - - - - - -     | 4 x MIG|   moved apart where they would overlap
//   |     |   o                          |        |
//   |   0 +--------------------------    |        |
//   |       1    2    4    8    16                |
//   |             concurrency                     |
//   +---------------------------------------------+
//
// Every point carries its values as data attributes, so a script can show them and a test can read
// them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "measure/chart.h"
#include "measure/chart_colour.h"

namespace septet::measure {

enum class SvgUse {
  kInPage,  // colours from the page's CSS variables, no title (the page has one)
  kFile,    // self-contained, follows the reader's light or dark scheme
};

std::string svg_chart(const Chart& chart, SvgUse use);

// The CSS variables --series-HUE-SHADE for one theme, as declarations for the page.
std::string series_colour_variables(const Chart& chart, Theme theme);

// Text with &, <, >, " and ' replaced, for element content and attributes.
std::string escape_markup(std::string_view text);

}  // namespace septet::measure
