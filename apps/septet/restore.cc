// septet restore: ends interrupted changes and re-creates the layouts that were applied last; what
// the boot unit runs (deploy/septet-restore.service).

#include <signal.h>
#include <unistd.h>

#include <memory>

#include "layout_words.h"

namespace septet::app {
namespace {

struct RestoreWords {
  LayoutWords layout;
  unsigned time_limit_seconds = 0;
};

// The driver cannot be interrupted, but the journal makes dying at any moment harmless.
extern "C" void time_is_up(int) {
  constexpr char kMessage[] =
      "septet: restore exceeded its time limit and stopped; septet restore goes on from there\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  static_cast<void>(ignored);
  ::_exit(1);
}

void limit_time(unsigned limit_seconds) {
  if (limit_seconds > 0) {
    struct sigaction action {};
    action.sa_handler = time_is_up;
    ::sigaction(SIGALRM, &action, nullptr);
    ::alarm(limit_seconds);
  }
}

int run_restore(const Globals& globals, RestoreWords words) {
  limit_time(words.time_limit_seconds);
  const bool all = words.layout.gpus.empty();
  if (all) {
    words.layout.gpus = {"all"};
  }
  auto view = read_chosen_gpus(globals, words.layout.gpus);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const partition::ApplyOptions options = apply_options(view->info, words.layout);
  if (all) {
    std::erase_if(view->gpus, [&](const gpu::GpuState& state) {
      const auto intent = options.state.read_intent(state.uuid);
      const auto desired = options.state.read_desired(state.uuid);
      return intent.ok() && !*intent && desired.ok() && !*desired;
    });
  }
  return report_all(globals, *view, [&](const gpu::GpuState& state) {
    return partition::restore_gpu(*view->driver, state.index, options);
  });
}

}  // namespace

void add_restore(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<RestoreWords>();
  CLI::App* verb = app.add_subcommand(
      "restore", "End interrupted changes and re-create the layouts applied last");
  add_gpu_option(*verb, words->layout.gpus);
  verb->add_option("--time-limit", words->time_limit_seconds, "Give up after this long")
      ->type_name("SECONDS");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_restore(globals, *words); };
  });
}

}  // namespace septet::app
