// septet completion: the lines that make a shell complete verbs, flags and the words they take.

#include <fmt/format.h>

#include "base/text.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr const char* kOutputFormats = "table json yaml csv";

// What may follow the words so far: subcommands and flags, and what --output takes.
struct Place {
  std::string path;  // "septet lease acquire"
  std::string description;
  std::vector<std::string> words;
};

void add_flags(const CLI::App& app, std::vector<std::string>& words) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      words.push_back("-" + name);
    }
  }
}

// Every place below app, app first. The program's own flags hold everywhere.
void walk(const CLI::App& app, const std::string& path, const CLI::App& root,
          std::vector<Place>& places) {
  Place place{path, app.get_description(), {}};
  for (const CLI::App* below : app.get_subcommands(nullptr)) {
    place.words.push_back(below->get_name());
  }
  add_flags(app, place.words);
  if (&app != &root) {
    add_flags(root, place.words);
  }
  places.push_back(std::move(place));
  for (const CLI::App* below : app.get_subcommands(nullptr)) {
    walk(*below, path + " " + below->get_name(), root, places);
  }
}

std::string bash_script(const std::vector<Place>& places) {
  std::string paths;
  std::string cases;
  for (const Place& place : places) {
    paths += (paths.empty() ? "" : "|") + fmt::format("'{}'", place.path);
    cases += fmt::format("    '{}') words='{}' ;;\n", place.path, fmt::join(place.words, " "));
  }
  return fmt::format(R"(_septet() {{
  local path=septet word words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${{COMP_WORDS[i]}}
    case "$path $word" in
    {}) path="$path $word" ;;
    esac
  done
  case "$path" in
{}  esac
  case "${{COMP_WORDS[COMP_CWORD - 1]}}" in
    -o | --output) words='{}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _septet septet
)",
                     paths, cases, kOutputFormats);
}

std::string fish_script(const std::vector<Place>& places) {
  std::string script;
  for (const Place& place : places) {
    const auto names = split(std::string_view(place.path), ' ');
    // The words typed so far have to be those of the place, and no deeper one.
    std::string condition;
    for (std::size_t i = 1; i < names.size(); ++i) {
      condition +=
          fmt::format("{}__fish_seen_subcommand_from {}", i == 1 ? "" : "; and ", names[i]);
    }
    if (condition.empty()) {
      condition = "__fish_use_subcommand";
    }
    script +=
        fmt::format("complete -c septet -n '{}' -a '{}'\n", condition, fmt::join(place.words, " "));
  }
  return script + fmt::format("complete -c septet -s o -l output -x -a '{}'\n", kOutputFormats);
}

std::string script_for(const std::string& shell, const CLI::App& app) {
  std::vector<Place> places;
  walk(app, "septet", app, places);
  if (shell == "fish") {
    return fish_script(places);
  }
  const std::string script = bash_script(places);
  return shell == "bash" ? script : "autoload -U +X bashcompinit && bashcompinit\n" + script;
}

}  // namespace

void add_completion(CLI::App& app, const Globals& /*globals*/, Action& action) {
  CLI::App* verb =
      app.add_subcommand("completion", "Print the lines that make a shell complete septet's words");
  verb->footer("bash: source <(septet completion bash)");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([&app, &action, shell] {
    action = [&app, shell] {
      fmt::print("{}", script_for(*shell, app));
      return 0;
    };
  });
}

}  // namespace septet::app
