// One function per verb: adds its words to the command line and says what to run.
//
// A verb's file parses, builds the object graph and runs it; decisions live in src/.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace septet::app {

enum class OutputFormat { kTable, kJson, kYaml, kCsv };

// What every verb may read once the command line is parsed.
struct Globals {
  std::string simulate;  // GPU model, MODELxN or a file; empty = the real driver
  OutputFormat output = OutputFormat::kTable;
  bool dry_run = false;
  bool yes = false;
};

// Set by the chosen verb: what to run after parsing; returns the exit code.
using Action = std::function<int()>;

void add_report(CLI::App& app, const Globals& globals, Action& action);
// The commit this binary was built from, "1a2b3c4d5e" with "-dirty" behind it if there were changes.
const char* commit();

void add_balance(CLI::App& app, const Globals& globals, Action& action);
void add_advise(CLI::App& app, const Globals& globals, Action& action);
void add_gpus(CLI::App& app, const Globals& globals, Action& action);
void add_profiles(CLI::App& app, const Globals& globals, Action& action);
void add_sim(CLI::App& app, const Globals& globals, Action& action);
void add_status(CLI::App& app, const Globals& globals, Action& action);
void add_perf(CLI::App& app, const Globals& globals, Action& action);
void add_serve(CLI::App& app, const Globals& globals, Action& action);
void add_version(CLI::App& app, const Globals& globals, Action& action);

}  // namespace septet::app
