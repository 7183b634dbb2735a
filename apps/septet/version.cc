// septet version: the version and commit this binary was built from.

#include <fmt/format.h>

#include "septet_commit.h"
#include "verb.h"

namespace septet::app {

const char* commit() { return SEPTET_COMMIT; }

void add_version(CLI::App& app, const Globals& /*globals*/, Action& action) {
  app.add_subcommand("version", "Print the version")->callback([&action] {
    action = [] {
      fmt::print("septet {} ({})\n", SEPTET_VERSION, commit());
      return 0;
    };
  });
}

}  // namespace septet::app
