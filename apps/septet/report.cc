// septet report: charts and a verdict from results.csv files.

#include "measure/report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <filesystem>
#include <memory>

#include "measure/results.h"
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
  std::string title;
  std::optional<double> price_per_hour;
  std::string currency = "$";
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
  Result<std::vector<measure::ResultRow>> rows = measure::parse_results(*text, file.string());
  if (!rows) {
    return rows.error();
  }
  for (measure::ResultRow& row : *rows) {
    row.context.run = run_name(file);
    input.rows.push_back(std::move(row));
  }
  return Ok{};
}

// Beside the first source when that is a folder, else here.
std::string default_page(const std::string& source) {
  std::error_code ignored;
  return fs::is_directory(source, ignored) ? (fs::path(source) / "report.html").string()
                                           : std::string("report.html");
}

int run_report(const ReportOptions& options, OutputFormat format) {
  measure::ReportInput input;
  if (!options.title.empty()) {
    input.title = options.title;
  }
  input.price_per_hour = options.price_per_hour;
  input.currency = options.currency;
  for (const std::string& source : options.sources) {
    if (const Result<Ok> read = read_source(source, input); !read) {
      return fail(read.error(), format);
    }
  }
  const std::string page =
      options.out.empty() ? default_page(options.sources.front()) : options.out;
  if (const Result<Ok> written = os::replace_file(page, measure::report_page(input)); !written) {
    return fail(written.error(), format);
  }
  fmt::print("{}\nThe report is in {}\n", measure::report_text(input, terminal_width()), page);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, const Globals& globals, Action& action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "Draw charts and a verdict from measured results");
  verb->add_option("source", options->sources, "Folders of septet compare, or results.csv files")
      ->required()
      ->type_name("DIR|CSV");
  verb->add_option("-o,--out", options->out, "The page to write (default: report.html)")
      ->type_name("FILE");
  verb->add_option("--title", options->title, "The page's title");
  verb->add_option("--price", options->price_per_hour,
                   "Price of the whole GPU per hour: adds the cost of a million inferences")
      ->check(CLI::PositiveNumber);
  verb->add_option("--currency", options->currency, "What the price is in")->capture_default_str();
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return run_report(*options, globals.output); };
  });
}

}  // namespace septet::app
