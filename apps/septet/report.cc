// septet report: charts and a verdict from measured results, of any program.

#include "measure/report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "gpu/gpu_model.h"
#include "measure/experiment.h"
#include "measure/foreign_results.h"
#include "measure/report_charts.h"
#include "measure/svg_chart.h"
#include "measure/text_chart.h"
#include "os/durable_file.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

namespace fs = std::filesystem;

constexpr int kWidthWithoutTerminal = 100;

struct ReportOptions {
  std::vector<std::string> sources;
  std::string out;
  std::string svg_folder;
  std::string title;
  std::optional<double> price_per_hour;
  std::string currency = "$";
  std::string p90_limit;
};

int terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kWidthWithoutTerminal;
}

// The file behind an argument: a folder stands for its results.csv.
fs::path results_file(const std::string& source) {
  const fs::path path(source);
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? path / "results.csv" : path;
}

// What a run is called beside others: its folder, or its file without the ending.
std::string run_name(const fs::path& file) {
  if (file.filename() == "results.csv" && file.has_parent_path()) {
    return fs::weakly_canonical(file).parent_path().filename().string();
  }
  return file.stem().string();
}

Result<Ok> read_source(const std::string& source, measure::ReportInput& input) {
  const fs::path file = results_file(source);
  const Result<std::string> text = os::read_whole_file(file.string());
  if (!text) {
    return text.error();
  }
  Result<std::vector<measure::ResultRow>> rows =
      measure::parse_any_results(*text, file.string(), run_name(file));
  if (!rows) {
    return rows.error();
  }
  for (measure::ResultRow& row : *rows) {
    if (!input.rows.empty() && row.load != input.rows.front().load) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("{} counts another kind of load than {}: requests in flight and "
                      "requests due a second cannot share a chart",
                      file.string(), input.rows.front().context.run),
          "report them apart");
    }
    input.rows.push_back(std::move(row));
  }
  return Ok{};
}

bool terminal_knows_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      const std::string locale = to_lower(value);
      return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    }
  }
  return false;
}

// The two charts of the page as text.
void print_charts(const measure::ReportInput& input) {
  const auto groups = measure::group_rows(input.rows);
  measure::TextChartOptions options;
  options.width = terminal_width();
  options.signs =
      terminal_knows_unicode() ? measure::TextSigns::kUnicode : measure::TextSigns::kAscii;
  options.colours = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr
                        ? measure::TextColours::kAnsi
                        : measure::TextColours::kNone;
  using measure::AxisScale;
  fmt::print("{}\n{}\n",
             measure::text_chart(measure::throughput_chart(groups, AxisScale::kLinear), options),
             measure::text_chart(
                 measure::latency_chart(groups, AxisScale::kLinear, AxisScale::kLinear), options));
}

// Each chart as a file of its own.
Result<Ok> write_svg_files(const std::string& folder, const measure::ReportInput& input) {
  SEPTET_TRY(os::make_folder(folder));
  using measure::AxisScale;
  const auto groups = measure::group_rows(input.rows);
  std::vector<measure::Chart> charts = {
      measure::throughput_chart(groups, AxisScale::kLinear),
      measure::throughput_chart(groups, AxisScale::kLog),
      measure::latency_chart(groups, AxisScale::kLinear, AxisScale::kLinear),
      measure::latency_chart(groups, AxisScale::kLog, AxisScale::kLog)};
  if (measure::has_scaling(groups)) {
    charts.push_back(measure::scaling_chart(groups));
  }
  for (const measure::Chart& chart : charts) {
    SEPTET_TRY(os::replace_file(folder + "/" + chart.id + ".svg",
                                measure::svg_chart(chart, measure::SvgUse::kFile)));
  }
  return Ok{};
}

// Beside the first source when that is a folder, else here.
std::string default_page(const std::string& source) {
  std::error_code ignored;
  return fs::is_directory(source, ignored) ? (fs::path(source) / "report.html").string()
                                           : std::string("report.html");
}

// How many partitions of each profile fill the GPU that the rows name.
std::map<std::string, int> instances_of_profiles(const std::vector<measure::ResultRow>& rows) {
  std::map<std::string, int> instances;
  for (const measure::ResultRow& row : rows) {
    const Result<const gpu::GpuModel*> model = gpu::find_gpu_model(row.context.gpu);
    if (!model) {
      continue;
    }
    for (const gpu::GpuInstanceProfile& profile : (*model)->profiles) {
      if (profile.name == row.context.profile) {
        instances[profile.name] = static_cast<int>(profile.max_instances);
      }
    }
  }
  return instances;
}

int run_report(const ReportOptions& options, OutputFormat format) {
  measure::ReportInput input;
  if (!options.title.empty()) {
    input.title = options.title;
  }
  input.price_per_hour = options.price_per_hour;
  input.currency = options.currency;
  if (!options.p90_limit.empty()) {
    const Result<Duration> limit = parse_duration(options.p90_limit);
    if (!limit) {
      return fail(limit.error(), format);
    }
    input.p90_limit_us = to_microseconds(*limit);
  }
  for (const std::string& source : options.sources) {
    if (const Result<Ok> read = read_source(source, input); !read) {
      return fail(read.error(), format);
    }
  }
  input.instances = instances_of_profiles(input.rows);
  const std::string page =
      options.out.empty() ? default_page(options.sources.front()) : options.out;
  if (const Result<Ok> written = os::replace_file(page, measure::report_page(input)); !written) {
    return fail(written.error(), format);
  }
  if (!options.svg_folder.empty()) {
    if (const Result<Ok> written = write_svg_files(options.svg_folder, input); !written) {
      return fail(written.error(), format);
    }
  }
  if (!input.rows.empty()) {
    print_charts(input);
  }
  fmt::print("{}\nThe report is in {}\n", measure::report_text(input, terminal_width()), page);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, const Globals& globals, Action& action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "Draw charts and a verdict from measured results");
  verb->add_option("source", options->sources,
                   "Folders of septet compare, its results.csv, CSV files of perf or "
                   "perf_analyzer, printouts of wrk")
      ->required()
      ->type_name("DIR|FILE");
  verb->add_option("-o,--out", options->out, "The page to write (default: report.html)")
      ->type_name("FILE");
  verb->add_option("--svg", options->svg_folder, "Write each chart as an SVG file into this folder")
      ->type_name("DIR");
  verb->add_option("--title", options->title, "The page's title");
  verb->add_option("--price,--price-per-hour", options->price_per_hour,
                   "Price of the whole GPU per hour: adds the cost of a million inferences")
      ->check(CLI::PositiveNumber);
  verb->add_option("--slo", options->p90_limit,
                   "Latency objective for p90 (100ms): which partition size keeps it best")
      ->type_name("DURATION");
  verb->add_option("--currency", options->currency, "What the price is in")->capture_default_str();
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return run_report(*options, globals.output); };
  });
}

}  // namespace septet::app
