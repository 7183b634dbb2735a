// septet: parses the command line, hands over to the chosen verb, turns its result into an exit
// code. To see what the program can do, read the list of verbs here.

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/result.h"
#include "verbs.h"

namespace septet::app {
namespace {

using AddVerb = void (*)(CLI::App&, const Globals&, Action&);

// In the order of --help.
constexpr std::array kVerbs = {
    AddVerb{add_gpus},       AddVerb{add_profiles}, AddVerb{add_status},  AddVerb{add_doctor},
    AddVerb{add_plan},       AddVerb{add_apply},    AddVerb{add_assert},  AddVerb{add_export},
    AddVerb{add_checkpoint}, AddVerb{add_reset},    AddVerb{add_restore}, AddVerb{add_sim},
    AddVerb{add_serve},      AddVerb{add_classify}, AddVerb{add_balance}, AddVerb{add_perf},
    AddVerb{add_compare},    AddVerb{add_report},   AddVerb{add_advise},  AddVerb{add_run},
    AddVerb{add_lease},      AddVerb{add_queue},    AddVerb{add_env},     AddVerb{add_lend_daemon},
    AddVerb{add_completion}, AddVerb{add_version},
};

void add_globals(CLI::App& app, Globals& globals) {
  app.add_option("--simulate", globals.simulate,
                 "Use a simulated GPU: a model, MODELxN, or a YAML file")
      ->type_name("MODEL[xN]|FILE");
  const std::map<std::string, OutputFormat> formats = {{"table", OutputFormat::kTable},
                                                       {"json", OutputFormat::kJson},
                                                       {"yaml", OutputFormat::kYaml},
                                                       {"csv", OutputFormat::kCsv}};
  app.add_option("-o,--output", globals.output, "table, json, yaml or csv")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case).description(""))
      ->type_name("FORMAT");
  app.add_flag("--dry-run", globals.dry_run, "Say what would be done and change nothing");
  app.add_flag("-y,--yes", globals.yes, "Do not ask before a change");
}

int run(int argc, char** argv) {
  CLI::App app("Share NVIDIA GPUs in a team: partition, serve, balance, measure, lend", "septet");
  app.require_subcommand(1);
  app.fallthrough();
  Globals globals;
  Action action;
  add_globals(app, globals);
  for (const AddVerb add_verb : kVerbs) {
    add_verb(app, globals, action);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error);  // --help
    }
    fmt::print(stderr, "septet: {}; see septet --help\n", error.what());
    return exit_code(ErrorKind::kUsage);
  }
  return action();
}

}  // namespace
}  // namespace septet::app

int main(int argc, char** argv) { return septet::app::run(argc, argv); }
