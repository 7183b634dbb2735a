// septet reset: removes every instance of GPUs, and with --mig-off MIG mode too.

#include <memory>

#include "layout_words.h"

namespace septet::app {
namespace {

struct ResetWords {
  LayoutWords layout;
  bool mig_off = false;
};

Result<partition::ApplyReport> reset_gpu(const GpuView& view, const gpu::GpuState& state,
                                         const ResetWords& words) {
  const bool stays_on = !words.mig_off && state.mig_current == gpu::MigMode::kEnabled;
  const partition::Layout nothing{
      .mode = stays_on ? gpu::MigMode::kEnabled : gpu::MigMode::kDisabled, .instances = {}};
  return partition::apply_layout(*view.driver, state.index, nothing,
                                 apply_options(view.info, words.layout));
}

int run_reset(const Globals& globals, const ResetWords& words) {
  auto view = read_chosen_gpus(globals, words.layout.gpus);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  Document plans = plan_document(view->info);
  for (const gpu::GpuState& state : view->gpus) {
    auto plan = partition::plan_layout(state, {}, plan_options(words.layout));
    if (!plan.ok()) {
      return fail(plan.error(), globals.output);
    }
    add_plan(plans, state, *plan);
    if (!globals.dry_run && !agrees(globals, *plan)) {
      return fail(make_error(ErrorKind::kFailed, "nothing was changed: not confirmed"),
                  globals.output);
    }
  }
  if (globals.dry_run) {
    print(plans, globals.output);
    return 0;
  }
  return report_all(globals, *view,
                    [&](const gpu::GpuState& state) { return reset_gpu(*view, state, words); });
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
