// septet: parses the command line, hands over to the chosen verb, turns its result into an exit
// code. To see what the program can do, read the list of verbs here.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/result.h"
#include "base/text.h"
#include "verbs.h"

namespace septet::app {
namespace {

using AddVerb = void (*)(CLI::App&, const Globals&, Action&);

// In the order of --help.
constexpr std::array kVerbs = {
    AddVerb{add_gpus},   AddVerb{add_profiles},   AddVerb{add_status},
    AddVerb{add_doctor}, AddVerb{add_plan},       AddVerb{add_apply},
    AddVerb{add_assert}, AddVerb{add_export},     AddVerb{add_checkpoint},
    AddVerb{add_reset},  AddVerb{add_restore},    AddVerb{add_sim},
    AddVerb{add_serve},  AddVerb{add_classify},   AddVerb{add_balance},
    AddVerb{add_perf},   AddVerb{add_compare},    AddVerb{add_report},
    AddVerb{add_advise}, AddVerb{add_run},        AddVerb{add_lease},
    AddVerb{add_queue},  AddVerb{add_env},        AddVerb{add_lend_daemon},
    AddVerb{add_vgpu},   AddVerb{add_completion}, AddVerb{add_version},
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

// The first word that is neither a flag nor a flag's value: the verb, right or wrong.
std::optional<std::string> verb_word(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const CLI::Option* flag = app.get_option_no_throw(argv[i]);
    if (flag != nullptr && flag->get_type_size() > 0) {
      ++i;
    } else if (argv[i][0] != '-') {
      return argv[i];
    }
  }
  return std::nullopt;
}

std::vector<std::string> flags_of(const CLI::App& verb, const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::App* each : {&verb, &app}) {
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        flags.push_back("--" + name);
      }
    }
  }
  return flags;
}

std::string advice(const std::optional<std::string>& nearest) {
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string();
}

// What is wrong with the command line, with the nearest verb or flag where a word is unknown.
std::string usage_error(const CLI::App& app, int argc, char** argv, const std::string& what) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    verbs.push_back(verb->get_name());
  }
  const std::optional<std::string> word = verb_word(app, argc, argv);
  if (!word) {
    return what + "; septet --help lists the verbs";
  }
  if (std::find(verbs.begin(), verbs.end(), *word) == verbs.end()) {
    return fmt::format("there is no verb '{}'{}; there are {}", *word,
                       advice(nearest_name(*word, verbs)), join_words(verbs));
  }
  const std::size_t dashes = what.find("expected: --");
  std::optional<std::string> nearest;
  if (dashes != std::string::npos) {
    const std::string_view wrong = std::string_view(what).substr(dashes + 10);
    nearest =
        nearest_name(wrong.substr(0, wrong.find(' ')), flags_of(*app.get_subcommand(*word), app));
  }
  return fmt::format("{}{}; see septet {} --help", what, advice(nearest), *word);
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
    fmt::print(stderr, "septet: {}\n", usage_error(app, argc, argv, error.what()));
    return exit_code(ErrorKind::kUsage);
  }
  return action();
}

}  // namespace
}  // namespace septet::app

int main(int argc, char** argv) { return septet::app::run(argc, argv); }
