// septet restore: ends interrupted changes and re-creates the layouts that were applied last; what
// the boot unit runs (deploy/septet-restore.service).

#include <signal.h>
#include <unistd.h>

#include <memory>

#include "layout_words.h"
#include "os/durable_file.h"
#include "partition/edge/mig_parted_file.h"

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

// The checkpoint's layouts, for the GPUs that it names.
Result<std::vector<GpuGoal>> goals_of_checkpoint(const GpuView& view, const std::string& file) {
  auto text = os::read_whole_file(file);
  SEPTET_TRY(text);
  auto devices = partition::read_checkpoint(*text, file, view.gpus);
  SEPTET_TRY(devices);
  std::vector<GpuGoal> goals;
  for (const partition::CheckpointDevice& device : *devices) {
    for (const gpu::GpuState& state : view.gpus) {
      if (state.uuid == device.gpu) {
        goals.push_back({&state, {}, device.layout});
      }
    }
  }
  return goals;
}

// All GPUs, or those with something to restore when none is named.
std::vector<GpuGoal> goals_of_state(const GpuView& view, const RestoreWords& words,
                                    const partition::StateFolder& folder) {
  std::vector<GpuGoal> goals;
  for (const gpu::GpuState& state : view.gpus) {
    const auto intent = folder.read_intent(state.uuid);
    const auto desired = folder.read_desired(state.uuid);
    const bool nothing = intent.ok() && !*intent && desired.ok() && !*desired;
    if (!nothing || !words.layout.gpus.empty()) {
      goals.push_back({&state, {}, {}});
    }
  }
  return goals;
}

int run_restore(const Globals& globals, const RestoreWords& words) {
  limit_time(words.time_limit_seconds);
  const auto view = read_chosen_gpus(globals, words.layout.gpus, WithoutSelector::kAll);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  const partition::ApplyOptions options = apply_options(view->info, words.layout);
  if (words.layout.file.empty()) {
    const std::vector<GpuGoal> goals = goals_of_state(*view, words, options.state);
    return report_all(globals, *view, words.layout, goals, [&](const GpuGoal& goal) {
      return partition::restore_gpu(*view->driver, goal.state->index, options);
    });
  }
  const auto goals = goals_of_checkpoint(*view, words.layout.file);
  if (!goals.ok()) {
    return fail(goals.error(), globals.output);
  }
  return report_all(globals, *view, words.layout, *goals, [&](const GpuGoal& goal) {
    return partition::apply_layout(*view->driver, goal.state->index, goal.layout, options);
  });
}

}  // namespace

void add_restore(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<RestoreWords>();
  CLI::App* verb = app.add_subcommand(
      "restore", "End interrupted changes and re-create the layouts applied last");
  add_gpu_option(*verb, words->layout.gpus);
  verb->add_option("-f,--file", words->layout.file, "Restore this checkpoint instead")
      ->type_name("FILE");
  verb->add_option("--time-limit", words->time_limit_seconds, "Give up after this long")
      ->type_name("SECONDS");
  verb->callback([&globals, &action, words] {
    action = [&globals, words] { return run_restore(globals, *words); };
  });
}

}  // namespace septet::app
