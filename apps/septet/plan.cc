// septet plan: what would be kept, destroyed and created for a wanted layout; touches nothing.

#include <fmt/format.h>

#include <memory>

#include "layout_words.h"
#include "partition/picture.h"

namespace septet::app {
namespace {

int run_plan(const Globals& globals, const LayoutWords& words) {
  auto want = want_of(words);
  if (!want.ok()) {
    return fail(want.error(), globals.output);
  }
  auto view = read_chosen_gpus(globals, words.gpus);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  Document document = plan_document(view->info);
  for (const gpu::GpuState& state : view->gpus) {
    auto plan = partition::plan_gpu(state, *want, plan_options(words));
    if (!plan.ok()) {
      return fail(plan.error(), globals.output);
    }
    add_plan(document, state, *plan);
    if (words.explain) {
      document.notes.push_back(partition::draw_plan(*plan));
    }
  }
  print(document, globals.output);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<LayoutWords>();
  CLI::App* verb = app.add_subcommand("plan", "Say how a layout would be reached, change nothing");
  add_layout_words(*verb, *words);
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_plan(globals, *words); };
  });
}

}  // namespace septet::app
