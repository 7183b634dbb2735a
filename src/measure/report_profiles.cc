#include "measure/report_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "measure/svg_chart.h"
#include "measure/terminal_text.h"

namespace septet::measure {
namespace {

std::string css_class(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDifference:
      return "difference";
    case FindingKind::kNoDifference:
      return "none";
    case FindingKind::kCaution:
      return "caution";
  }
  return "";
}

std::string table_row(const ProfileResult& result, const ReportInput& input) {
  std::string row = fmt::format(
      "<tr{}><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td><td>{}</td>",
      result.within_limit ? "" : " class=\"quiet\"", escape_markup(result.profile),
      result.instances > 0 ? fmt::format("{}", result.instances) : "-",
      result.scaled_up ? "~ " : "", with_half_width(result.gpu_throughput, result.gpu_half_width),
      latency_text(result.row.p90_us), result.row.concurrency);
  if (input.price_per_hour) {
    row += result.price_of_million ? fmt::format("<td>{:.2f}</td>", *result.price_of_million)
                                   : "<td>-</td>";
  }
  return row +
         fmt::format("<td class=\"bad\">{}</td></tr>\n", result.within_limit ? "" : "too slow");
}

std::string table_of(const std::vector<ProfileResult>& results, const std::string& model,
                     const ReportInput& input) {
  std::string table =
      "<div class=\"scroll\"><table><tr><th>profile</th><th>fit a GPU</th>"
      "<th>inferences/s a GPU</th><th>p90</th><th>at concurrency</th>";
  if (input.price_per_hour) {
    table += fmt::format("<th>{} / million</th>", escape_markup(input.currency));
  }
  table += "<th></th></tr>\n";
  for (const ProfileResult& result : results) {
    if (result.model == model) {
      table += table_row(result, input);
    }
  }
  return table + "</table></div>\n";
}

}  // namespace

ProfileQuestion profile_question(const ReportInput& input) {
  return {.instances = input.instances,
          .p90_limit_us = input.p90_limit_us,
          .price_per_hour = input.price_per_hour};
}

std::string profile_section(const ReportInput& input) {
  if (!has_profiles(input.rows)) {
    return {};
  }
  const ProfileQuestion question = profile_question(input);
  const std::vector<ProfileResult> results = compare_profiles(input.rows, question);
  std::string out =
      "<section class=\"verdict\" id=\"profiles-verdict\">\n"
      "<h2>Which partition size</h2>\n<ul>\n";
  for (const Finding& finding : profile_verdict(results, question)) {
    out += fmt::format("<li class=\"{}\">{}</li>\n", css_class(finding.kind),
                       escape_markup(finding.text));
  }
  out += "</ul>\n</section>\n<div class=\"charts\">\n";
  std::vector<std::string> models;
  for (const ProfileResult& result : results) {
    if (std::find(models.begin(), models.end(), result.model) != models.end()) {
      continue;
    }
    models.push_back(result.model);
    Chart chart = profile_chart(input.rows, result.model, question);
    chart.id += fmt::format("-{}", models.size());
    out += fmt::format(
        "<section>\n<div class=\"heading\"><h2>{}</h2></div>\n"
        "<p class=\"subtitle\">{}</p>\n{}</section>\n<section>\n"
        "<h2>A GPU full of one profile</h2>\n{}</section>\n",
        escape_markup(chart.title), chart.subtitle, svg_chart(chart, SvgUse::kInPage),
        table_of(results, result.model, input));
  }
  return out + "</div>\n";
}

std::string profile_text(const ReportInput& input, int columns) {
  if (!has_profiles(input.rows)) {
    return {};
  }
  const ProfileQuestion question = profile_question(input);
  std::string out;
  for (const Finding& finding : profile_verdict(compare_profiles(input.rows, question), question)) {
    out += wrap_text(finding.kind == FindingKind::kCaution ? "! " : "* ", finding.text, columns);
  }
  return out;
}

}  // namespace septet::measure
