#include "measure/text_chart.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "measure/terminal_text.h"

namespace septet::measure {
namespace {

using testing::HasSubstr;
using testing::Not;

Chart sample_chart() {
  Chart chart{.id = "t",
              .title = "Throughput",
              .x = {.label = "concurrency", .whole = true},
              .y = {.label = "inferences per second"}};
  chart.series.push_back({.name = "rises", .points = {{.x = 0, .y = 0}, {.x = 10, .y = 30}}});
  chart.series.push_back(
      {.name = "stays", .points = {{.x = 0, .y = 15}, {.x = 10, .y = 15}}, .hue = 1});
  return chart;
}

TEST(TextChart, DrawsLinesPointsNamesAndAxes) {
  const std::string text =
      text_chart(sample_chart(), {.width = 40, .height = 7, .signs = TextSigns::kAscii});

  EXPECT_EQ(text,
            "Throughput: inferences per second\n"
            "30 +                       ...a  a rises\n"
            "   |                   .....\n"
            "20 +               .....\n"
            "   |b.........................b  b stays\n"
            "10 +       .....\n"
            "   |   .....\n"
            " 0 +a...\n"
            "   +---------------------------\n"
            "    0    2    4     6    8   10\n"
            "    concurrency\n");
}

TEST(TextChart, KeepsToItsWidthAndHeight) {
  for (const TextSigns signs : {TextSigns::kAscii, TextSigns::kUnicode}) {
    for (const int width : {40, 80, 132}) {
      const std::string text =
          text_chart(sample_chart(), {.width = width, .height = 12, .signs = signs});

      const auto lines = split(text, '\n');
      EXPECT_EQ(lines.size(), 12U + 5U);
      for (const std::string_view line : lines) {
        EXPECT_LE(terminal_columns(line), width) << line;
      }
    }
  }
}

TEST(TextChart, UsesColoursOnlyWhenAsked) {
  TextChartOptions options;
  EXPECT_THAT(text_chart(sample_chart(), options), Not(HasSubstr("\x1b[")));

  options.colours = TextColours::kAnsi;

  EXPECT_THAT(text_chart(sample_chart(), options), HasSubstr("\x1b[38;5;33ma\x1b[0m"));
}

TEST(TextChart, NamesEveryLineAlsoWhereTheyEndTogether) {
  Chart chart = sample_chart();
  for (int i = 0; i < 5; ++i) {
    chart.series.push_back(
        {.name = "same" + std::to_string(i), .points = {{.x = 0, .y = 15}, {.x = 10, .y = 15}}});
  }

  const std::string text = text_chart(chart, {.width = 60, .height = 8});

  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(text, HasSubstr("same" + std::to_string(i)));
  }
}

TEST(TextChart, DrawsAnEmptyChart) {
  EXPECT_THAT(text_chart(Chart{.title = "None"}, {}), HasSubstr("None"));
}

TEST(TerminalText, CountsCharactersNotBytes) {
  EXPECT_EQ(terminal_columns("7 \u00d7 MIG"), 7);
  EXPECT_EQ(pad_left("\u00b5s", 4), "  \u00b5s");
  EXPECT_EQ(pad_right("\u00b5s", 4), "\u00b5s  ");
}

TEST(TerminalText, WrapsBehindItsMark) {
  EXPECT_EQ(wrap_text("* ", "one two three", 9), "* one two\n  three\n");
  EXPECT_EQ(wrap_text("* ", "averylongword x", 6), "* averylongword\n  x\n");
}

}  // namespace
}  // namespace septet::measure
