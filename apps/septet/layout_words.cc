#include "layout_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "gpu/selector.h"
#include "partition/edge/holders.h"
#include "partition/edge/mig_parted_file.h"
#include "partition/edge/preflight.h"
#include "partition/fleet.h"
#include "partition/mig_parted.h"
#include "partition/picture.h"

namespace septet::app {
namespace {

using partition::ApplyReport;
using partition::GpuPlan;

std::string placement_text(const gpu::Placement& placement) {
  return fmt::format("{}:{}", placement.start, placement.size);
}

Json compute_json(const std::vector<unsigned>& slices) {
  Json json = Json::array();
  for (const unsigned count : slices) {
    json.push_back(count);
  }
  return json;
}

Json row(const gpu::GpuState& state, const char* action, const std::string& profile,
         const gpu::Placement& placement) {
  return {{"gpu", state.index},       {"action", action},
          {"profile", profile},       {"placement", placement_text(placement)},
          {"start", placement.start}, {"size", placement.size}};
}

void add_kept(Json& steps, const gpu::GpuState& state, const partition::KeptInstance& kept) {
  Json step = row(state, "keep", kept.profile, kept.instance.placement);
  step["gpu_instance"] = kept.instance.id.value();
  step["busy"] = kept.occupancy == partition::Occupancy::kBusy;
  if (!kept.compute.destroy.empty() || !kept.compute.create.empty()) {
    step["action"] = "change";
    step["why"] = fmt::format("{} compute instances go, {} come", kept.compute.destroy.size(),
                              kept.compute.create.size());
    step["create_compute"] = compute_json(kept.compute.create);
  }
  steps.push_back(std::move(step));
}

Json steps_json(const gpu::GpuState& state, const GpuPlan& plan) {
  Json steps = Json::array();
  for (const partition::KeptInstance& kept : plan.plan.keep) {
    add_kept(steps, state, kept);
  }
  for (const partition::DestroyedInstance& gone : plan.plan.destroy) {
    Json step = row(state, "destroy", gone.profile, gone.instance.placement);
    step["gpu_instance"] = gone.instance.id.value();
    step["why"] = gone.reason;
    steps.push_back(std::move(step));
  }
  for (const partition::CreatedInstance& fresh : plan.plan.create) {
    Json step = row(state, "create", fresh.profile, fresh.placement);
    step["create_compute"] = compute_json(fresh.compute);
    steps.push_back(std::move(step));
  }
  return steps;
}

Json remaining_json(const GpuPlan& plan) {
  Json json = Json::object();
  for (std::size_t p = 0; p < plan.plan.remaining.size(); ++p) {
    json[plan.space.profile(p).name] = plan.plan.remaining[p];
  }
  return json;
}

std::string remaining_text(const GpuPlan& plan) {
  std::vector<std::string> parts;
  for (std::size_t p = 0; p < plan.plan.remaining.size(); ++p) {
    if (plan.plan.remaining[p] > 0) {
      parts.push_back(fmt::format("{}:{}", plan.space.profile(p).name, plan.plan.remaining[p]));
    }
  }
  return parts.empty() ? "nothing more fits"
                       : fmt::format("one of these still fits: {}", fmt::join(parts, ", "));
}

const char* outcome_word(partition::TransactionOutcome outcome) {
  switch (outcome) {
    case partition::TransactionOutcome::kUnchanged:
      return "unchanged";
    case partition::TransactionOutcome::kApplied:
      return "applied";
    case partition::TransactionOutcome::kRolledBack:
      return "rolled_back";
    case partition::TransactionOutcome::kUnclear:
      return "unclear";
    case partition::TransactionOutcome::kResetNeeded:
      return "reset_needed";
  }
  return "unclear";
}

}  // namespace

void add_gpu_option(CLI::App& verb, std::vector<std::string>& gpus) {
  verb.add_option("-i,--gpu", gpus, "Which GPUs: index, UUID, PCI bus id, name, or all")
      ->type_name("GPU")
      ->delimiter(',');
}

void add_drain_option(CLI::App& verb, std::optional<unsigned>& drain_seconds) {
  verb.add_option("--drain", drain_seconds,
                  "Let septet's own processes leave what must go, for at most this long")
      ->type_name("SECONDS");
}

void add_layout_words(CLI::App& verb, LayoutWords& words) {
  verb.add_option("want", words.want,
                  "What to have: 1g.5gb:7, 3g.20gb 2g.10gb@4, 3g, 1g+me, '>=10GB:2', 19,19,9:4")
      ->type_name("WANT");
  verb.add_option("--cgi", words.nvidia_smi_list, "The same as nvidia-smi mig -cgi takes it")
      ->type_name("LIST");
  add_gpu_option(verb, words.gpus);
  verb.add_flag("--add", words.add, "Keep everything where it is and add this");
  verb.add_flag("--move", words.move, "Keep everything and add this; idle instances may move");
  verb.add_flag("--pack", words.pack, "Put all of it on as few of the GPUs as possible");
  verb.add_flag("--spread", words.spread, "Spread all of it evenly over the GPUs");
  verb.add_flag("--explain", words.explain, "Draw the layouts before and after");
  verb.add_option("-f,--file", words.file, "A configuration of mig-parted, YAML or JSON")
      ->type_name("FILE");
  verb.add_option("-c,--config", words.label, "Which of the file's configurations")
      ->type_name("NAME");
  add_drain_option(verb, words.drain_seconds);
}

namespace {

Result<partition::Want> want_of(const LayoutWords& words) {
  if (!words.nvidia_smi_list.empty()) {
    return partition::parse_nvidia_smi_list(words.nvidia_smi_list);
  }
  if (words.want.empty()) {
    return make_error(ErrorKind::kUsage, "nothing is wanted",
                      "write for example 1g.5gb:7, or use septet reset to have nothing");
  }
  return partition::parse_want(words.want);
}

Result<std::vector<GpuGoal>> goals_of_words(const GpuView& view, const LayoutWords& words) {
  auto want = want_of(words);
  SEPTET_TRY(want);
  const auto distribution = words.pack     ? partition::Distribution::kPack
                            : words.spread ? partition::Distribution::kSpread
                                           : partition::Distribution::kEach;
  auto plans = partition::plan_fleet(view.gpus, *want, plan_options(words), distribution);
  SEPTET_TRY(plans);
  std::vector<GpuGoal> goals;
  for (std::size_t i = 0; i < plans->size(); ++i) {
    goals.push_back({&view.gpus[i], (*plans)[i], (*plans)[i].after});
  }
  return goals;
}

Result<std::vector<GpuGoal>> goals_of_file(const GpuView& view, const LayoutWords& words) {
  auto config = partition::load_mig_parted(words.file);
  SEPTET_TRY(config);
  auto entries = partition::find_label(*config, words.label);
  SEPTET_TRY(entries);
  std::vector<GpuGoal> goals;
  for (const gpu::GpuState& state : view.gpus) {
    const auto goal = partition::goal_for(**entries, state);
    if (!goal) {
      continue;
    }
    const bool on = goal->mode == gpu::MigMode::kEnabled;
    auto plan = on ? partition::plan_gpu(state, partition::want_of(*goal), plan_options(words))
                   : partition::plan_layout(state, {}, plan_options(words));
    if (!plan.ok()) {
      Error error = plan.error();
      error.message = fmt::format("{}:{}: {}", words.file, goal->line, error.message);
      return error;
    }
    const partition::Layout layout =
        on ? plan->after : partition::Layout{.mode = gpu::MigMode::kDisabled, .instances = {}};
    goals.push_back({&state, *std::move(plan), layout});
  }
  if (goals.empty()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no entry of {} is for any of these GPUs", words.file),
                      "look at device-filter and devices");
  }
  return goals;
}

}  // namespace

Result<std::vector<GpuGoal>> goals_of(const GpuView& view, const LayoutWords& words) {
  auto goals = words.file.empty() ? goals_of_words(view, words) : goals_of_file(view, words);
  if (goals.ok()) {
    return goals;
  }
  // Who is in the way, with user, unit and container.
  Error error = goals.error();
  for (const gpu::GpuState& state : view.gpus) {
    error = partition::with_holders(std::move(error), state,
                                    {.simulated = view.info.simulated,
                                     .root = partition::standard_root(),
                                     .drain = std::nullopt});
  }
  return error;
}

partition::PlanOptions plan_options(const LayoutWords& words) {
  return {
      .policy = words.add ? partition::ExistingPolicy::kKeep : partition::ExistingPolicy::kReplace,
      .keep_by_moving = words.move,
      .may_drain = words.drain_seconds.has_value()};
}

Result<GpuView> read_chosen_gpus(const Globals& globals, const std::vector<std::string>& selectors,
                                 WithoutSelector without) {
  auto view = read_gpus(globals, fmt::format("{}", fmt::join(selectors, ",")));
  if (view.ok() && selectors.empty() && view->gpus.size() != 1 &&
      without == WithoutSelector::kOnlyOne) {
    return make_error(ErrorKind::kUsage, fmt::format("this node has {} GPUs", view->gpus.size()),
                      "say which with --gpu 0, --gpu 0,1 or --gpu all");
  }
  return view;
}

WithoutSelector without_selector(const LayoutWords& words) {
  return words.file.empty() && !words.pack && !words.spread ? WithoutSelector::kOnlyOne
                                                            : WithoutSelector::kAll;
}

Document plan_document(const gpu::DriverInfo& info) {
  Document document;
  document.schema = "septet.plan/1";
  document.fields["driver"] = to_json(info);
  document.notes = {driver_note(info)};
  document.rows = "steps";
  document.columns = {{"gpu", "GPU", Align::kRight},
                      {"action", "ACTION"},
                      {"profile", "PROFILE"},
                      {"placement", "PLACEMENT"},
                      {"gpu_instance", "INSTANCE", Align::kRight},
                      {"why", "WHY"}};
  document.fields["gpus"] = Json::array();
  document.fields["steps"] = Json::array();
  return document;
}

Document report_document(const gpu::DriverInfo& info) {
  Document document;
  document.schema = "septet.apply/1";
  document.fields["driver"] = to_json(info);
  document.notes = {driver_note(info)};
  document.rows = "mig_devices";
  document.columns = {{"gpu", "GPU", Align::kRight},
                      {"place", "PLACE"},
                      {"before", "UUID BEFORE"},
                      {"after", "UUID NOW"}};
  document.fields["gpus"] = Json::array();
  document.fields["mig_devices"] = Json::array();
  return document;
}

partition::ApplyOptions apply_options(const gpu::DriverInfo& info, const LayoutWords& words) {
  partition::ApplyOptions options{.state = partition::StateFolder::standard(info.simulated),
                                  .plan = {.may_drain = words.drain_seconds.has_value()}};
  if (words.drain_seconds) {
    options.drain = seconds(*words.drain_seconds);
  }
  return options;
}

void add_plan(Document& document, const gpu::GpuState& state, const GpuPlan& plan) {
  for (Json& step : steps_json(state, plan)) {
    document.fields["steps"].push_back(std::move(step));
  }
  document.fields["gpus"].push_back({{"gpu", state.index},
                                     {"name", state.name},
                                     {"uuid", state.uuid.value()},
                                     {"before", to_string(plan.before)},
                                     {"after", to_string(plan.after)},
                                     {"destroyed", plan.plan.destroy.size()},
                                     {"created", plan.plan.create.size()},
                                     {"kept", plan.plan.keep.size()},
                                     {"unused_units", plan.plan.unused_units},
                                     {"units", plan.space.units()},
                                     {"unused_slices", plan.plan.unused_slices},
                                     {"slices", plan.space.compute_slices()},
                                     {"still_fits", remaining_json(plan)},
                                     {"notes", plan.notes}});
  document.notes.push_back(fmt::format(
      "GPU {}: keep {}, destroy {}, create {}; unused {} of {} units of memory and {} of {} "
      "compute slices; {}",
      state.index, plan.plan.keep.size(), plan.plan.destroy.size(), plan.plan.create.size(),
      plan.plan.unused_units, plan.space.units(), plan.plan.unused_slices,
      plan.space.compute_slices(), remaining_text(plan)));
  for (const std::string& note : plan.notes) {
    document.notes.push_back("note: " + note);
  }
}

void add_report(Document& document, const ApplyReport& report) {
  Json devices = Json::array();
  for (const partition::UuidChange& change : report.uuids) {
    Json device = {{"gpu", report.index},
                   {"place", change.place},
                   {"before", change.before.value()},
                   {"after", change.after.value()}};
    document.fields["mig_devices"].push_back(device);
    devices.push_back(std::move(device));
  }
  document.fields["gpus"].push_back({{"gpu", report.index},
                                     {"name", report.gpu_name},
                                     {"uuid", report.gpu.value()},
                                     {"outcome", outcome_word(report.outcome)},
                                     {"layout", to_string(partition::layout_of(report.state))},
                                     {"driver_calls", report.driver_calls},
                                     {"mig_devices", std::move(devices)},
                                     {"notes", report.notes}});
  document.notes.push_back(fmt::format("GPU {}: {}, {} driver calls; {}", report.index,
                                       outcome_word(report.outcome), report.driver_calls,
                                       to_string(partition::layout_of(report.state))));
  for (const std::string& note : report.notes) {
    document.notes.push_back("note: " + note);
  }
}

int report_all(const Globals& globals, const GpuView& view, const LayoutWords& words,
               const std::vector<GpuGoal>& goals, const ApplyToGpu& apply) {
  Document document = report_document(view.info);
  std::optional<Error> first;
  for (const GpuGoal& goal : goals) {
    auto report = apply(goal);
    if (report.ok()) {
      add_report(document, *report);
    }
    if (words.explain) {
      document.notes.push_back(partition::draw_plan(goal.plan));
    }
    const auto error = report.ok() ? partition::error_of(*report) : report.error();
    first = first ? first : error;
  }
  if (!document.fields["gpus"].empty() || !first) {
    print(document, globals.output);
  }
  return first ? fail(*first, globals.output) : 0;
}

bool agrees(const Globals& globals, const GpuPlan& plan) {
  if (plan.plan.destroy.empty() || globals.yes || ::isatty(STDIN_FILENO) == 0) {
    return true;
  }
  fmt::print(stderr, "{}destroy {} instances? [y/N] ", partition::draw_plan(plan),
             plan.plan.destroy.size());
  std::fflush(stderr);
  char answer[16] = {};
  return std::fgets(answer, sizeof answer, stdin) != nullptr &&
         (answer[0] == 'y' || answer[0] == 'Y');
}

}  // namespace septet::app
