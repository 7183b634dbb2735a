// septet doctor: what is wrong with this machine's GPUs, why, and the command that mends it.

#include "partition/doctor.h"

#include <fmt/format.h>

#include "gpu/edge/open_driver.h"
#include "gpu/edge/read_host_facts.h"
#include "gpu_view.h"
#include "output.h"
#include "partition/edge/state_folder.h"
#include "verb.h"

namespace septet::app {

namespace {

partition::Patient examine(gpu::GpuDriver& driver, unsigned index,
                           const partition::StateFolder& state) {
  partition::Patient patient{index, driver.observe(index), std::nullopt, false};
  if (patient.state.ok()) {
    const auto intent = state.read_intent(patient.state->uuid);
    const auto desired = state.read_desired(patient.state->uuid);
    // A journal that cannot be read is one that restore has to look at.
    patient.change_interrupted = !intent.ok() || intent->has_value();
    if (desired.ok() && desired->has_value()) {
      patient.desired = (*desired)->layout;
    }
  }
  return patient;
}

partition::Examination examine_all(const Globals& globals) {
  partition::Examination result;
  result.host = gpu::read_host_facts();
  if (!globals.simulate.empty()) {
    result.simulate = fmt::format("--simulate {} ", globals.simulate);
  }
  const auto driver = gpu::open_driver(globals.simulate);
  if (!driver.ok()) {
    result.driver_error = driver.error();
    return result;
  }
  const auto info = (*driver)->info();
  const auto count = (*driver)->gpu_count();
  if (!info.ok() || !count.ok()) {
    result.driver_error = info.ok() ? count.error() : info.error();
    return result;
  }
  result.driver = *info;
  const auto state = partition::StateFolder::standard(info->simulated);
  for (unsigned index = 0; index < *count; ++index) {
    result.gpus.push_back(examine(**driver, index, state));
  }
  return result;
}

int run_doctor(const Globals& globals) {
  const partition::Examination examination = examine_all(globals);
  Document document;
  document.schema = "septet.doctor/1";
  document.fields["findings"] = Json::array();
  bool has_problem = false;
  for (const partition::Finding& finding : partition::diagnose(examination)) {
    has_problem = has_problem || finding.severity == partition::Severity::kProblem;
    document.fields["findings"].push_back({{"severity", to_string(finding.severity)},
                                           {"code", finding.code},
                                           {"gpu", finding.gpu ? Json(*finding.gpu) : Json()},
                                           {"what", finding.what},
                                           {"mend", finding.mend}});
    document.heading.push_back(fmt::format(
        "{}{}: {}\n  to mend it: {}", to_string(finding.severity),
        finding.gpu ? fmt::format(" on GPU {}", *finding.gpu) : "", finding.what, finding.mend));
  }
  if (document.heading.empty()) {
    document.heading.push_back(
        fmt::format("{} GPU(s) examined, nothing to mend", examination.gpus.size()));
  }
  if (globals.output == OutputFormat::kCsv) {
    document.rows = "findings";
    document.columns = {{"severity", ""}, {"code", ""}, {"gpu", ""}, {"what", ""}, {"mend", ""}};
  }
  if (!examination.driver_error) {
    document.notes = {driver_note(examination.driver)};
  }
  print(document, globals.output);
  if (examination.driver_error) {
    return exit_code(examination.driver_error->kind);
  }
  return has_problem ? exit_code(ErrorKind::kFailed) : 0;
}

}  // namespace

void add_doctor(CLI::App& app, const Globals& globals, Action& action) {
  app.add_subcommand("doctor", "Say what is wrong with the GPUs, and what mends it")
      ->callback([&globals, &action] { action = [&globals] { return run_doctor(globals); }; });
}

}  // namespace septet::app
