// septet assert: whether GPUs have a wanted layout; exit code 1 and the difference when not.

#include <fmt/format.h>

#include <memory>

#include "layout_words.h"
#include "partition/edge/mig_parted_file.h"

namespace septet::app {
namespace {

// With a file by MIG devices, as mig-parted does; with words by the plan that would be needed.
Result<std::vector<std::string>> differences(const GpuView& view, const LayoutWords& words) {
  std::vector<std::string> result;
  if (words.file.empty()) {
    auto goals = goals_of(view, words);
    SEPTET_TRY(goals);
    for (const GpuGoal& goal : *goals) {
      if (!goal.plan.plan.changes_nothing() || goal.state->mig_current != gpu::MigMode::kEnabled) {
        result.push_back(fmt::format("GPU {} has {}, wanted {}", goal.state->index,
                                     to_string(goal.plan.before), to_string(goal.plan.after)));
      }
    }
    return result;
  }
  auto config = partition::load_mig_parted(words.file);
  SEPTET_TRY(config);
  auto entries = partition::find_label(*config, words.label);
  SEPTET_TRY(entries);
  for (const gpu::GpuState& state : view.gpus) {
    const auto goal = partition::goal_for(**entries, state);
    const auto difference = goal ? partition::difference(*goal, state) : std::nullopt;
    if (difference) {
      result.push_back(*difference);
    }
  }
  return result;
}

int run_assert(const Globals& globals, const LayoutWords& words) {
  const auto view = read_chosen_gpus(globals, words.gpus, WithoutSelector::kAll);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const auto found = differences(*view, words);
  if (!found.ok()) {
    return fail(found.error(), globals.output);
  }
  if (!found->empty()) {
    return fail(make_error(ErrorKind::kFailed, fmt::format("{}", fmt::join(*found, "; ")),
                           "septet apply brings it there"),
                globals.output);
  }
  Document document;
  document.schema = "septet.assert/1";
  document.fields = {{"driver", to_json(view->info)}, {"holds", true}};
  document.rows = "";
  document.heading = {"the GPUs have what is wanted", driver_note(view->info)};
  print(document, globals.output);
  return 0;
}

}  // namespace

void add_assert(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<LayoutWords>();
  CLI::App* verb = app.add_subcommand("assert", "Say whether GPUs have a layout");
  add_layout_words(*verb, *words);
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_assert(globals, *words); };
  });
}

}  // namespace septet::app
