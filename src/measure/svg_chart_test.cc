#include "measure/svg_chart.h"

#include <gmock/gmock.h>

#include <regex>

namespace septet::measure {
namespace {

using testing::HasSubstr;
using testing::Not;

Chart sample_chart() {
  Chart chart{.id = "sample", .title = "A & B", .x = {.label = "x"}, .y = {.label = "y"}};
  chart.series.push_back(
      {.name = "one", .points = {{.x = 1, .y = 10, .low = 9, .high = 11}, {.x = 2, .y = 20}}});
  chart.series.push_back({.name = "<two>",
                          .points = {{.x = 1, .y = 5}, {.x = 2, .y = 20, .doubtful = true}},
                          .hue = 1,
                          .style = LineStyle::kDashed});
  return chart;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Every tag is closed in order, every attribute is quoted: what an XML parser would insist on.
bool is_well_formed(const std::string& xml) {
  static const std::regex kTag(
      R"re(<(/?)([a-z]+)((?:\s+[a-zA-Z][a-zA-Z0-9-]*="[^"<]*")*)\s*(/?)>)re");
  std::vector<std::string> open;
  std::size_t rest = 0;
  for (std::sregex_iterator tag(xml.begin(), xml.end(), kTag), none; tag != none; ++tag) {
    const std::string between = xml.substr(rest, static_cast<std::size_t>(tag->position()) - rest);
    rest = static_cast<std::size_t>(tag->position() + tag->length());
    if (between.find('<') != std::string::npos) {
      return false;
    }
    if ((*tag)[1] == "/") {
      if (open.empty() || open.back() != (*tag)[2]) {
        return false;
      }
      open.pop_back();
    } else if ((*tag)[4] != "/") {
      open.push_back((*tag)[2]);
    }
  }
  return open.empty() && xml.find('<', rest) == std::string::npos;
}

TEST(SvgChart, HasAPointForEveryValueWithItsData) {
  const std::string svg = svg_chart(sample_chart(), SvgUse::kInPage);

  EXPECT_EQ(count(svg, "<circle"), 4);
  EXPECT_EQ(count(svg, "class=\"point doubtful\""), 1);
  EXPECT_THAT(svg, HasSubstr(R"(data-x="1" data-y="10" data-low="9" data-high="11")"));
  EXPECT_EQ(count(svg, "class=\"band\""), 1);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 1);
}

TEST(SvgChart, IsWellFormedAndEscapesNames) {
  for (const SvgUse use : {SvgUse::kInPage, SvgUse::kFile}) {
    const std::string svg = svg_chart(sample_chart(), use);

    EXPECT_TRUE(is_well_formed(svg)) << svg;
    EXPECT_THAT(svg, HasSubstr("&lt;two&gt;"));
    EXPECT_THAT(svg, Not(HasSubstr("<two>")));
  }
}

TEST(SvgChart, AsAFileBringsTitleAndColoursForLightAndDark) {
  const std::string svg = svg_chart(sample_chart(), SvgUse::kFile);

  EXPECT_THAT(svg, HasSubstr("A &amp; B</text>"));
  EXPECT_EQ(count(svg, "--series-0-50:#"), 2);
  EXPECT_EQ(count(svg, "--series-1-50:#"), 2);
}

TEST(SvgChart, PutsHigherValuesHigher) {
  const std::string svg = svg_chart(sample_chart(), SvgUse::kInPage);

  std::smatch low;
  std::smatch high;
  ASSERT_TRUE(std::regex_search(svg, low, std::regex(R"re(cy="([0-9.]+)"[^>]*data-y="5")re")));
  ASSERT_TRUE(std::regex_search(svg, high, std::regex(R"re(cy="([0-9.]+)"[^>]*data-y="20")re")));
  EXPECT_GT(std::stod(low[1]), std::stod(high[1]));
}

TEST(SvgChart, MovesNamesOfLinesThatEndTogetherApart) {
  const std::string svg = svg_chart(sample_chart(), SvgUse::kInPage);

  std::vector<double> places;
  const std::regex name(R"re(class="name"[^>]* y="([0-9.]+)")re");
  for (std::sregex_iterator found(svg.begin(), svg.end(), name), none; found != none; ++found) {
    places.push_back(std::stod((*found)[1]));
  }
  ASSERT_EQ(places.size(), 2U);
  EXPECT_GE(places[1] - places[0], 16.9);
}

TEST(SvgChart, DrawsAnEmptyChart) {
  EXPECT_TRUE(is_well_formed(svg_chart(Chart{.id = "none"}, SvgUse::kFile)));
}

}  // namespace
}  // namespace septet::measure
