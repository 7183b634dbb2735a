#include "measure/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "measure/experiment.h"
#include "measure/report_assets.h"
#include "measure/report_charts.h"
#include "measure/report_profiles.h"
#include "measure/svg_chart.h"
#include "measure/verdict.h"

namespace septet::measure {
namespace {

constexpr double kInferencesPriced = 1e6;
constexpr double kSecondsPerHour = 3600;

// The distinct values of a text over all rows, in order of appearance.
template <typename Get>
std::vector<std::string> distinct(const std::vector<ResultRow>& rows, Get get) {
  std::vector<std::string> values;
  for (const ResultRow& row : rows) {
    const std::string value = get(row);
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(value);
    }
  }
  return values;
}

std::string joined(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

// The text escaped, its figures kept together with what follows or precedes them.
std::string prose(const std::string& text) {
  std::string escaped = escape_markup(text);
  for (const std::string_view sign : {" %", " \u00b1 "}) {
    std::string kept(sign);
    for (std::size_t blank = kept.find(' '); blank != std::string::npos; blank = kept.find(' ')) {
      kept.replace(blank, 1, "&nbsp;");
    }
    for (std::size_t at = escaped.find(sign); at != std::string::npos;
         at = escaped.find(sign, at + kept.size())) {
      escaped.replace(at, sign.size(), kept);
    }
  }
  return escaped;
}

class PageWriter {
 public:
  explicit PageWriter(const ReportInput& input) : input_(input), groups_(group_rows(input.rows)) {}

  std::string write() {
    open();
    add_facts();
    add_verdict();
    add_charts();
    out_ += profile_section(input_);
    add_rows();
    add_footer();
    out_ += "</main>\n<div class=\"tip\" role=\"status\"></div>\n<script>";
    out_ += report_script();
    out_ += "</script>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  // Names all colours that any chart of the page uses.
  std::string colours(Theme theme) const {
    std::string variables =
        series_colour_variables(throughput_chart(groups_, AxisScale::kLinear), theme) +
        series_colour_variables(scaling_chart(groups_), theme);
    for (const std::string& model :
         distinct(input_.rows, [](const ResultRow& row) { return row.context.model; })) {
      variables += series_colour_variables(
          profile_chart(input_.rows, model, profile_question(input_)), theme);
    }
    return variables;
  }

  void open() {
    const std::string light =
        "--ground:#f5f6f8;--page:#ffffff;--ink:#1c1f26;--quiet:#626a78;--grid:#e3e6eb;"
        "--gain:#2f7d4f;--caution:#9a5b00;--caution-ground:#fdf0d8;" +
        colours(Theme::kLight);
    const std::string dark =
        "--ground:#0f1115;--page:#16181d;--ink:#e8eaee;--quiet:#9aa2b1;--grid:#2c3039;"
        "--gain:#57b57f;--caution:#e5a93d;--caution-ground:#3a2c10;" +
        colours(Theme::kDark);
    add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>\n"
        ":root{{color-scheme:light dark;{}}}\n"
        "@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        escape_markup(input_.title), light, dark);
    out_ += report_style();
    add("</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n", escape_markup(input_.title));
  }

  void add_fact(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      add("<li>{} <b>{}</b></li>", name, escape_markup(value));
    }
  }

  void add_facts() {
    const std::vector<ResultRow>& rows = input_.rows;
    out_ += "<ul class=\"facts\">";
    add_fact("model", joined(distinct(rows, [](const ResultRow& r) { return r.context.model; })));
    add_fact("GPU", joined(distinct(rows, [](const ResultRow& r) { return r.context.gpu; })));
    if (std::any_of(rows.begin(), rows.end(),
                    [](const ResultRow& row) { return row.context.simulated; })) {
      out_ += "<li class=\"simulated\">simulated GPU, real processes and load</li>";
    }
    add_fact("on", joined(distinct(rows, [](const ResultRow& r) { return r.context.machine; })));
    add_fact("measured", input_.measured_at);
    out_ += "</ul>\n";
  }

  void add_verdict() {
    out_ += "<section class=\"verdict\" id=\"verdict\">\n<h2>What the numbers say</h2>\n<ul>\n";
    for (const Finding& finding : draw_verdict(input_.rows)) {
      add("<li class=\"{}\">{}</li>\n", css_class(finding.kind), prose(finding.text));
    }
    for (const std::string& note : input_.notes) {
      add("<li class=\"caution\">{}</li>\n", escape_markup(note));
    }
    if (input_.rows.empty()) {
      out_ += "<li class=\"caution\">Nothing was measured.</li>\n";
    }
    out_ += "</ul>\n</section>\n";
  }

  static std::string_view css_class(FindingKind kind) {
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

  void add_charts() {
    if (groups_.empty()) {
      return;
    }
    out_ += "<div class=\"charts\">\n";
    add_chart_pair(throughput_chart(groups_, AxisScale::kLinear),
                   throughput_chart(groups_, AxisScale::kLog));
    add_chart_pair(latency_chart(groups_, AxisScale::kLinear, AxisScale::kLinear),
                   latency_chart(groups_, AxisScale::kLog, AxisScale::kLog));
    if (has_scaling(groups_)) {
      const Chart chart = scaling_chart(groups_);
      add("<section>\n<div class=\"heading\"><h2>{}</h2></div>\n<p class=\"subtitle\">{}</p>\n{}"
          "</section>\n",
          chart.title, chart.subtitle, svg_chart(chart, SvgUse::kInPage));
    }
    add_configurations();
    out_ += "</div>\n";
  }

  // One chart twice, with linear and with logarithmic axes; a button shows the other one.
  void add_chart_pair(const Chart& linear, const Chart& logarithmic) {
    add("<section>\n<div class=\"heading\"><h2>{} against concurrency</h2>"
        "<button class=\"switch\" aria-pressed=\"false\">logarithmic</button></div>\n"
        "<p class=\"subtitle\">{}</p>\n<div class=\"linear\">{}</div>\n"
        "<div class=\"logarithmic\">{}</div>\n</section>\n",
        linear.title, linear.subtitle, svg_chart(linear, SvgUse::kInPage),
        svg_chart(logarithmic, SvgUse::kInPage));
  }

  void add_configurations() {
    out_ +=
        "<section>\n<h2>Each configuration at its best</h2>\n<p class=\"subtitle\">At the lowest "
        "concurrency that reaches 97 % of its highest throughput</p>\n<div class=\"scroll\"><table "
        "id=\"configurations\">\n<tr><th>configuration</th><th>inferences/s</th>"
        "<th>at</th><th>p50</th><th>p90</th><th>p99</th>";
    if (input_.price_per_hour) {
      add("<th>{} / million</th>", escape_markup(input_.currency));
    }
    out_ += "</tr>\n";
    for (const ConfigurationRows& group : groups_) {
      const ResultRow& best = group.best();
      add("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
          escape_markup(configuration_name(group.configuration)), rate(best), best.concurrency,
          latency_text(best.p50_us), latency_text(best.p90_us), latency_text(best.p99_us));
      if (input_.price_per_hour) {
        add("<td>{}</td>", price_of_million(best));
      }
      out_ += "</tr>\n";
    }
    out_ += "</table></div>\n";
    if (input_.price_per_hour) {
      add("<p class=\"subtitle\">At {}{} an hour for the whole GPU, used or not.</p>\n",
          escape_markup(input_.currency), chart_number(*input_.price_per_hour));
    }
    out_ += "</section>\n";
  }

  static std::string rate(const ResultRow& row) {
    return with_half_width(row.throughput, row.throughput_half_width);
  }

  std::string price_of_million(const ResultRow& row) const {
    if (row.throughput <= 0) {
      return "-";
    }
    return fmt::format(
        "{:.2f}", *input_.price_per_hour / kSecondsPerHour / row.throughput * kInferencesPriced);
  }

  void add_rows() {
    add("<details id=\"rows\">\n<summary>All {} measurements</summary>\n<div class=\"scroll\">"
        "<table>\n<tr><th>configuration</th><th>concurrency</th><th>inferences/s</th><th>p50</th>"
        "<th>p90</th><th>p95</th><th>p99</th><th>failed</th><th></th></tr>\n",
        input_.rows.size());
    for (const ConfigurationRows& group : groups_) {
      const std::string name = escape_markup(configuration_name(group.configuration));
      for (const ResultRow& row : group.rows) {
        add("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
            "<td{}>{}</td><td class=\"quiet\">{}</td></tr>\n",
            name, row.concurrency, rate(row), latency_text(row.p50_us), latency_text(row.p90_us),
            latency_text(row.p95_us), latency_text(row.p99_us),
            row.errors > 0 ? " class=\"bad\"" : "", row.errors, row.stable ? "" : "not stable");
      }
    }
    out_ += "</table></div>\n</details>\n";
  }

  void add_footer() {
    out_ += "<footer>";
    if (!input_.command.empty()) {
      add("<p>Measured with <code>{}</code></p>", escape_markup(input_.command));
    }
    std::set<std::uint64_t> seeds;
    for (const ResultRow& row : input_.rows) {
      seeds.insert(row.context.seed);
    }
    add("<p>septet {}, seed {}. Throughput counts answered requests only. Latency runs from the "
        "instant a request was due to the end of its answer. Points and bands: value and 95 % "
        "confidence interval, where there is one; hollow points were not stable or had "
        "failures.</p></footer>\n",
        escape_markup(
            joined(distinct(input_.rows, [](const ResultRow& r) { return r.context.commit; }))),
        fmt::join(seeds, ", "));
  }

  const ReportInput& input_;
  std::vector<ConfigurationRows> groups_;
  std::string out_;
};

}  // namespace

std::string report_page(const ReportInput& input) { return PageWriter(input).write(); }

}  // namespace septet::measure
