// septet export and septet checkpoint: what the GPUs have now, in mig-parted's two formats.
//
// export: counts per kind of MIG device, one configuration; reads back with apply -f.
// checkpoint: placements too, per GPU; reads back with restore -f.

#include <fmt/format.h>

#include <memory>

#include "layout_words.h"
#include "os/durable_file.h"
#include "partition/edge/mig_parted_file.h"

namespace septet::app {
namespace {

struct ExportWords {
  std::vector<std::string> gpus;
  std::string label = "current";
  std::string file;
};

int write_out(const Globals& globals, const std::string& file, const std::string& text) {
  if (file.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  const auto written = os::replace_file(file, text);
  return written.ok() ? 0 : fail(written.error(), globals.output);
}

int run_export(const Globals& globals, const ExportWords& words) {
  const auto view = read_chosen_gpus(globals, words.gpus, WithoutSelector::kAll);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const auto entries = partition::export_entries(view->gpus);
  return write_out(globals, words.file,
                   globals.output == OutputFormat::kJson
                       ? partition::write_json(words.label, entries)
                       : partition::write_yaml(words.label, entries));
}

int run_checkpoint(const Globals& globals, const ExportWords& words) {
  const auto view = read_chosen_gpus(globals, words.gpus, WithoutSelector::kAll);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  return write_out(globals, words.file, partition::write_checkpoint(view->gpus));
}

}  // namespace

void add_export(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<ExportWords>();
  CLI::App* verb =
      app.add_subcommand("export", "Write what GPUs have as a configuration of mig-parted");
  add_gpu_option(*verb, words->gpus);
  verb->add_option("-l,--label", words->label, "The configuration's name")->type_name("NAME");
  verb->add_option("-f,--file", words->file, "Where to write; standard output without it")
      ->type_name("FILE");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_export(globals, *words); };
  });
}

void add_checkpoint(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<ExportWords>();
  CLI::App* verb =
      app.add_subcommand("checkpoint", "Write what GPUs have, with placements, for restore -f");
  add_gpu_option(*verb, words->gpus);
  verb->add_option("-f,--file", words->file, "Where to write; standard output without it")
      ->type_name("FILE");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_checkpoint(globals, *words); };
  });
}

}  // namespace septet::app
