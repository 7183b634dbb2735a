// septet reset: removes every instance of GPUs, and with --mig-off MIG mode too.

#include <memory>

#include "layout_words.h"

namespace septet::app {
namespace {

struct ResetWords {
  LayoutWords layout;
  bool mig_off = false;
};

Result<std::vector<GpuGoal>> nothing_on(const GpuView& view, const ResetWords& words) {
  std::vector<GpuGoal> goals;
  for (const gpu::GpuState& state : view.gpus) {
    const bool stays_on = !words.mig_off && state.mig_current == gpu::MigMode::kEnabled;
    auto plan = partition::plan_layout(state, {}, plan_options(words.layout));
    SEPTET_TRY(plan);
    goals.push_back(
        {&state,
         *std::move(plan),
         {.mode = stays_on ? gpu::MigMode::kEnabled : gpu::MigMode::kDisabled, .instances = {}}});
  }
  return goals;
}

int run_reset(const Globals& globals, const ResetWords& words) {
  const auto view = read_chosen_gpus(globals, words.layout.gpus);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const auto goals = nothing_on(*view, words);
  if (!goals.ok()) {
    return fail(goals.error(), globals.output);
  }
  Document plans = plan_document(view->info);
  for (const GpuGoal& goal : *goals) {
    add_plan(plans, *goal.state, goal.plan);
    if (!globals.dry_run && !agrees(globals, goal.plan)) {
      return fail(make_error(ErrorKind::kFailed, "nothing was changed: not confirmed"),
                  globals.output);
    }
  }
  if (globals.dry_run) {
    print(plans, globals.output);
    return 0;
  }
  const partition::ApplyOptions options = apply_options(view->info, words.layout);
  return report_all(globals, *view, words.layout, *goals, [&](const GpuGoal& goal) {
    return partition::apply_layout(*view->driver, goal.state->index, goal.layout, options);
  });
}

}  // namespace

void add_reset(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<ResetWords>();
  CLI::App* verb = app.add_subcommand("reset", "Remove every instance of GPUs");
  add_gpu_option(*verb, words->layout.gpus);
  add_drain_option(*verb, words->layout.drain_seconds);
  verb->add_flag("--mig-off", words->mig_off, "Also switch MIG mode off");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_reset(globals, *words); };
  });
}

}  // namespace septet::app
