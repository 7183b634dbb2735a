// septet plan: what would be kept, destroyed and created for a wanted layout; touches nothing.

#include <memory>

#include "layout_words.h"
#include "partition/picture.h"

namespace septet::app {
namespace {

struct PlanWords {
  LayoutWords layout;
  bool defragment = false;
};

Result<std::vector<GpuGoal>> plans_of(const GpuView& view, const PlanWords& words) {
  if (!words.defragment) {
    return goals_of(view, words.layout);
  }
  std::vector<GpuGoal> goals;
  for (const gpu::GpuState& state : view.gpus) {
    auto plan = partition::plan_defragment(state, plan_options(words.layout));
    SEPTET_TRY(plan);
    const partition::Layout layout = plan->after;
    goals.push_back({&state, *std::move(plan), layout});
  }
  return goals;
}

int run_plan(const Globals& globals, const PlanWords& words) {
  const WithoutSelector without =
      words.defragment ? WithoutSelector::kAll : without_selector(words.layout);
  const auto view = read_chosen_gpus(globals, words.layout.gpus, without);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const auto goals = plans_of(*view, words);
  if (!goals.ok()) {
    return fail(goals.error(), globals.output);
  }
  Document document = plan_document(view->info);
  for (const GpuGoal& goal : *goals) {
    add_plan(document, *goal.state, goal.plan);
    if (words.layout.explain) {
      document.notes.push_back(partition::draw_plan(goal.plan));
    }
  }
  print(document, globals.output);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<PlanWords>();
  CLI::App* verb = app.add_subcommand("plan", "Say how a layout would be reached, change nothing");
  add_layout_words(*verb, words->layout);
  verb->add_flag("--defragment", words->defragment,
                 "Move idle instances so that larger ones fit; name no layout with it");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_plan(globals, *words); };
  });
}

}  // namespace septet::app
