// The verbs: each adds its words to the command line and says what to run. Included by main.cc
// only.
#pragma once

#include "verb.h"

namespace septet::app {

void add_advise(CLI::App& app, const Globals& globals, Action& action);
void add_balance(CLI::App& app, const Globals& globals, Action& action);
void add_classify(CLI::App& app, const Globals& globals, Action& action);
void add_doctor(CLI::App& app, const Globals& globals, Action& action);
void add_gpus(CLI::App& app, const Globals& globals, Action& action);
void add_perf(CLI::App& app, const Globals& globals, Action& action);
void add_profiles(CLI::App& app, const Globals& globals, Action& action);
void add_report(CLI::App& app, const Globals& globals, Action& action);
void add_serve(CLI::App& app, const Globals& globals, Action& action);
void add_sim(CLI::App& app, const Globals& globals, Action& action);
void add_status(CLI::App& app, const Globals& globals, Action& action);
void add_plan(CLI::App& app, const Globals& globals, Action& action);
void add_apply(CLI::App& app, const Globals& globals, Action& action);
void add_assert(CLI::App& app, const Globals& globals, Action& action);
void add_export(CLI::App& app, const Globals& globals, Action& action);
void add_checkpoint(CLI::App& app, const Globals& globals, Action& action);
void add_reset(CLI::App& app, const Globals& globals, Action& action);
void add_restore(CLI::App& app, const Globals& globals, Action& action);
void add_perf(CLI::App& app, const Globals& globals, Action& action);
void add_compare(CLI::App& app, const Globals& globals, Action& action);
void add_serve(CLI::App& app, const Globals& globals, Action& action);
void add_env(CLI::App& app, const Globals& globals, Action& action);
void add_lease(CLI::App& app, const Globals& globals, Action& action);
void add_lend_daemon(CLI::App& app, const Globals& globals, Action& action);
void add_queue(CLI::App& app, const Globals& globals, Action& action);
void add_run(CLI::App& app, const Globals& globals, Action& action);
void add_completion(CLI::App& app, const Globals& globals, Action& action);
void add_vgpu(CLI::App& app, const Globals& globals, Action& action);
void add_version(CLI::App& app, const Globals& globals, Action& action);

}  // namespace septet::app
