#include "partition/gpu_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "gpu/gpu_model.h"
#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

std::string gpu_text(const gpu::GpuState& state) {
  return fmt::format("GPU {} ({})", state.index, state.name);
}

const gpu::GpuModel* model_of(const gpu::GpuState& state) {
  for (const gpu::GpuModel& model : gpu::gpu_models()) {
    const auto& ids = model.pci_device_ids;
    if (std::find(ids.begin(), ids.end(), state.pci_device_id) != ids.end()) {
      return &model;
    }
  }
  return nullptr;
}

// Wishes for what is there, anywhere. The planner leaves busy ones where they are by itself, unless
// capacity counts first: then they are bound to their place here.
void wish_for_existing(const PlanRequest& request, std::vector<Wish>& wishes) {
  for (const ExistingInstance& existing : request.existing) {
    const std::size_t profile = request.space.index_of(existing.instance.profile_id);
    if (profile >= request.space.profiles().size()) {
      continue;
    }
    Wish wish{.profiles = {profile}, .text = request.space.profile(profile).name};
    if (existing.occupancy == Occupancy::kBusy &&
        request.objective == Objective::kLargestCapacity) {
      wish.start = existing.instance.placement.start;
    }
    for (const gpu::ComputeInstance& compute : existing.instance.compute_instances) {
      wish.compute.push_back(compute.placement.size);
    }
    std::sort(wish.compute.rbegin(), wish.compute.rend());
    if (wish.compute == std::vector<unsigned>{request.space.profile(profile).slices}) {
      wish.compute.clear();
    }
    wishes.push_back(std::move(wish));
  }
}

}  // namespace

Result<LayoutSpace> space_of(const gpu::GpuState& state, std::vector<std::string>& notes) {
  if (state.mig_current == gpu::MigMode::kUnsupported) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("{} cannot be partitioned: it has no MIG", gpu_text(state)),
                      "septet advise names the techniques that work on it");
  }
  if (!state.profiles.empty()) {
    return LayoutSpace::create(state.profiles);
  }
  const gpu::GpuModel* model = model_of(state);
  if (model == nullptr || model->profiles.empty()) {
    return make_error(
        ErrorKind::kPrecondition,
        fmt::format("{} names no MIG profiles while MIG is off, and its model is not "
                    "known",
                    gpu_text(state)),
        "enable MIG first: septet apply with no instance wanted, or nvidia-smi -mig 1");
  }
  notes.push_back(fmt::format("{} names no profiles while MIG is off; planned with the table of {}",
                              gpu_text(state), model->key));
  return LayoutSpace::create(model->profiles);
}

std::vector<ExistingInstance> existing_of(const gpu::GpuState& state,
                                          const std::vector<gpu::GpuInstanceId>& assigned) {
  std::vector<ExistingInstance> result;
  for (const gpu::GpuInstance& instance : state.instances) {
    ExistingInstance existing{
        .instance = instance, .occupancy = Occupancy::kFree, .busy_compute = {}, .holder = {}};
    if (std::find(assigned.begin(), assigned.end(), instance.id) != assigned.end()) {
      existing.occupancy = Occupancy::kIdle;
    }
    std::vector<std::string> holders;
    bool whole = false;
    for (const gpu::GpuProcess& process : state.processes) {
      if (process.gpu_instance != instance.id) {
        continue;
      }
      existing.occupancy = Occupancy::kBusy;
      holders.push_back(fmt::format("{} (pid {})", process.name, process.pid));
      whole = whole || !process.compute_instance;
      if (process.compute_instance) {
        existing.busy_compute.push_back(*process.compute_instance);
      }
    }
    if (whole) {
      existing.busy_compute.clear();
    }
    existing.holder = join_words(holders);
    result.push_back(std::move(existing));
  }
  return result;
}

Error to_error(const Infeasible& infeasible, const gpu::GpuState& state) {
  const bool blocked = infeasible.constraint == Constraint::kBusyInstances ||
                       infeasible.constraint == Constraint::kExistingInstances;
  Error error =
      make_error(blocked ? ErrorKind::kPrecondition : ErrorKind::kNoCapacity,
                 fmt::format("{}: {}", gpu_text(state), infeasible.message), infeasible.hint);
  if (!infeasible.alternatives.empty()) {
    error.hint += fmt::format("{}nearest that fit: {}", error.hint.empty() ? "" : "; ",
                              fmt::join(infeasible.alternatives, " | "));
  }
  return error;
}

Result<GpuPlan> plan_request(const gpu::GpuState& state, PlanRequest request, LayoutSpace space,
                             std::vector<std::string> notes) {
  PlanOutcome outcome = make_plan(request);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    return to_error(*infeasible, state);
  }
  GpuPlan result{.before = layout_of(state),
                 .after = {},
                 .plan = std::get<Plan>(std::move(outcome)),
                 .space = std::move(space),
                 .notes = std::move(notes)};
  result.after = layout_after(result.plan);
  return result;
}

Result<GpuPlan> plan_gpu(const gpu::GpuState& state, const Want& want, const PlanOptions& options) {
  std::vector<std::string> notes;
  auto space = space_of(state, notes);
  SEPTET_TRY(space);
  auto wishes = resolve_want(want, *space, notes);
  if (!wishes.ok()) {
    Error error = wishes.error();
    error.message = fmt::format("{}: {}", gpu_text(state), error.message);
    return error;
  }
  PlanRequest request{.space = *space,
                      .existing = existing_of(state, options.assigned),
                      .wishes = *std::move(wishes),
                      .policy = options.policy,
                      .may_drain = options.may_drain};
  if (options.keep_by_moving) {
    request.policy = ExistingPolicy::kReplace;
    wish_for_existing(request, request.wishes);
  }
  return plan_request(state, std::move(request), *space, std::move(notes));
}

Result<GpuPlan> plan_layout(const gpu::GpuState& state, const Layout& wanted,
                            const PlanOptions& options) {
  std::vector<std::string> notes;
  auto space = space_of(state, notes);
  SEPTET_TRY(space);
  PlanRequest request{.space = *space,
                      .existing = existing_of(state, options.assigned),
                      .wishes = {},
                      .policy = options.policy,
                      .may_drain = options.may_drain};
  for (const LayoutInstance& instance : wanted.instances) {
    ProfileSelector selector{.text = instance.profile};
    selector.name = parse_profile_name(instance.profile);
    if (!selector.name) {
      selector.id = instance.profile_id;
    }
    auto choice = choose_profiles(selector, space->profiles());
    SEPTET_TRY(choice);
    Wish wish{.profiles = choice->profiles,
              .start = instance.placement.start,
              .compute = instance.compute,
              .text = instance.profile};
    if (wish.compute == std::vector<unsigned>{space->profile(choice->profiles.front()).slices}) {
      wish.compute.clear();
    }
    request.wishes.push_back(std::move(wish));
  }
  return plan_request(state, std::move(request), *space, std::move(notes));
}

Result<GpuPlan> plan_defragment(const gpu::GpuState& state, const PlanOptions& options) {
  std::vector<std::string> notes;
  auto space = space_of(state, notes);
  SEPTET_TRY(space);
  PlanRequest request{.space = *space,
                      .existing = existing_of(state, options.assigned),
                      .wishes = {},
                      .objective = Objective::kLargestCapacity};
  wish_for_existing(request, request.wishes);
  return plan_request(state, std::move(request), *space, std::move(notes));
}

}  // namespace septet::partition
