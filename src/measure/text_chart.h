// A Chart as text for a terminal.
//
//   inferences per second
//    30 ┤                    ⣀⡠⠤c────  c 7 × MIG
//    20 ┤            ⣀⠤⠒⠉
//    10 ┤      b⠤⠤⠤⠤⠤⠤⠤b⠤⠤⠤b  b 2 × MIG
//     0 ┼────────────────────────────
//       0      4      8     12     16
//       concurrency: requests in flight
//
// Lines are Braille dots (2 x 4 a character), every measured point is its line's letter. Pure.
#pragma once

#include <string>

#include "measure/chart.h"

namespace septet::measure {

enum class TextSigns {
  kUnicode,  // Braille and box characters
  kAscii,    // letters and dots only
};
enum class TextColours {
  kNone,
  kAnsi,  // 256-colour sequences
};

struct TextChartOptions {
  int width = 80;   // columns of the whole
  int height = 16;  // rows of the drawing area
  TextSigns signs = TextSigns::kUnicode;
  TextColours colours = TextColours::kNone;
};

std::string text_chart(const Chart& chart, const TextChartOptions& options);

}  // namespace septet::measure
