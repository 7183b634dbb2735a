// septet apply: brings GPUs to a wanted layout, as a transaction, and reads back what is there.

#include <fmt/format.h>

#include <memory>

#include "layout_words.h"
#include "partition/picture.h"

namespace septet::app {
namespace {

// Plans all before any is changed: what cannot be is refused while nothing has happened.
Result<bool> plan_all(const Globals& globals, const LayoutWords& words, const partition::Want& want,
                      const std::vector<gpu::GpuState>& states, Document& document) {
  for (const gpu::GpuState& state : states) {
    auto plan = partition::plan_gpu(state, want, plan_options(words));
    SEPTET_TRY(plan);
    add_plan(document, state, *plan);
    if (words.explain) {
      document.notes.push_back(partition::draw_plan(*plan));
    }
    if (!globals.dry_run && !agrees(globals, *plan)) {
      return false;
    }
  }
  return true;
}

int run_apply(const Globals& globals, const LayoutWords& words) {
  auto want = want_of(words);
  if (!want.ok()) {
    return fail(want.error(), globals.output);
  }
  auto view = read_chosen_gpus(globals, words.gpus);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  Document document = plan_document(view->info);
  const auto agreed = plan_all(globals, words, *want, view->gpus, document);
  if (!agreed.ok()) {
    return fail(agreed.error(), globals.output);
  }
  if (globals.dry_run) {
    print(document, globals.output);
    return 0;
  }
  if (!*agreed) {
    return fail(make_error(ErrorKind::kFailed, "nothing was changed: not confirmed"),
                globals.output);
  }
  const partition::ApplyOptions options = apply_options(view->info, words);
  return report_all(globals, *view, [&](const gpu::GpuState& state) {
    return partition::apply_want(*view->driver, state.index, *want, options);
  });
}

}  // namespace

void add_apply(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<LayoutWords>();
  CLI::App* verb = app.add_subcommand("apply", "Bring GPUs to a layout");
  add_layout_words(*verb, *words);
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_apply(globals, *words); };
  });
}

}  // namespace septet::app
