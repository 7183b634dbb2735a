// What a verb is made of: the words that hold for all of them, and what it hands back to main().
//
// A verb's file parses, builds the object graph and runs it; decisions live in src/. It defines its
// add_VERB() of verbs.h, which only main.cc includes: a new verb recompiles nothing else.
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

// The commit this binary was built from, "1a2b3c4d5e" with "-dirty" behind it if there were
// changes.
const char* commit();

}  // namespace septet::app
