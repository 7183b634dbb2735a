// septet apply: brings GPUs to a wanted layout, as a transaction, and reads back what is there.

#include <memory>

#include "layout_words.h"
#include "partition/picture.h"

namespace septet::app {
namespace {

struct ApplyWords {
  LayoutWords layout;
  bool defragment = false;
};

Result<std::vector<GpuGoal>> defragmented(const GpuView& view, const LayoutWords& words) {
  std::vector<GpuGoal> goals;
  for (const gpu::GpuState& state : view.gpus) {
    auto plan = partition::plan_defragment(state, plan_options(words));
    SEPTET_TRY(plan);
    const partition::Layout layout = plan->after;
    goals.push_back({&state, *std::move(plan), layout});
  }
  return goals;
}

int show_plan(const Globals& globals, const GpuView& view, const ApplyWords& words,
              const std::vector<GpuGoal>& goals) {
  Document document = plan_document(view.info);
  for (const GpuGoal& goal : goals) {
    add_plan(document, *goal.state, goal.plan);
    if (words.layout.explain) {
      document.notes.push_back(partition::draw_plan(goal.plan));
    }
  }
  print(document, globals.output);
  return 0;
}

int run_apply(const Globals& globals, const ApplyWords& words) {
  auto view =
      read_chosen_gpus(globals, words.layout.gpus,
                       words.defragment ? WithoutSelector::kAll : without_selector(words.layout));
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const auto goals =
      words.defragment ? defragmented(*view, words.layout) : goals_of(*view, words.layout);
  if (!goals.ok()) {
    return fail(goals.error(), globals.output);
  }
  if (globals.dry_run) {
    return show_plan(globals, *view, words, *goals);
  }
  for (const GpuGoal& goal : *goals) {
    if (!agrees(globals, goal.plan)) {
      return fail(make_error(ErrorKind::kFailed, "nothing was changed: not confirmed"),
                  globals.output);
    }
  }
  const partition::ApplyOptions options = apply_options(view->info, words.layout);
  return report_all(globals, *view, words.layout, *goals, [&](const GpuGoal& goal) {
    return partition::apply_layout(*view->driver, goal.state->index, goal.layout, options);
  });
}

}  // namespace

void add_apply(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<ApplyWords>();
  CLI::App* verb = app.add_subcommand("apply", "Bring GPUs to a layout");
  add_layout_words(*verb, words->layout);
  verb->add_flag("--defragment", words->defragment,
                 "Move idle instances so that larger ones fit; name no layout with it");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_apply(globals, *words); };
  });
}

}  // namespace septet::app
