#include "partition/change_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "partition/compute_layout.h"

namespace septet::partition {
namespace {

const LayoutInstance* find_place(const Layout& layout, const gpu::GpuInstance& instance) {
  for (const LayoutInstance& entry : layout.instances) {
    if (entry.profile_id == instance.profile_id && entry.placement == instance.placement) {
      return &entry;
    }
  }
  return nullptr;
}

const gpu::GpuInstanceProfile* profile_of(const gpu::GpuState& state, gpu::ProfileId id) {
  for (const gpu::GpuInstanceProfile& profile : state.profiles) {
    if (profile.id == id) {
      return &profile;
    }
  }
  return nullptr;
}

std::string place_name(const gpu::GpuState& state, const gpu::GpuInstance& instance) {
  const gpu::GpuInstanceProfile* profile = profile_of(state, instance.profile_id);
  return fmt::format(
      "{}@{}",
      profile != nullptr ? profile->name : fmt::format("profile {}", instance.profile_id.value()),
      instance.placement.start);
}

bool runs_in(const gpu::GpuState& state, gpu::GpuInstanceId instance,
             gpu::ComputeInstanceId compute) {
  return std::any_of(state.processes.begin(), state.processes.end(), [&](const auto& process) {
    return process.gpu_instance == instance &&
           (!process.compute_instance || process.compute_instance == compute);
  });
}

ComputeChange compute_change(const gpu::GpuState& state, const gpu::GpuInstance& instance,
                             const std::vector<unsigned>& wanted) {
  const gpu::GpuInstanceProfile* profile = profile_of(state, instance.profile_id);
  const unsigned slices = profile != nullptr ? profile->slices : instance.placement.size;
  std::vector<ExistingCompute> existing;
  for (const gpu::ComputeInstance& compute : instance.compute_instances) {
    existing.push_back({compute.id, compute.placement, runs_in(state, instance.id, compute.id)});
  }
  if (const auto around_busy = plan_compute(slices, existing, wanted)) {
    return *around_busy;
  }
  for (ExistingCompute& compute : existing) {
    compute.busy = false;  // the driver refuses what is really in use
  }
  // What never fits (an edited journal) is asked of the driver all the same: it refuses, and that
  // ends in a rollback instead of a wrong success.
  return plan_compute(slices, existing, wanted).value_or(ComputeChange{{}, wanted});
}

// Steps by phase; joined in order at the end.
struct Phases {
  std::vector<ChangeStep> destroy_compute;
  std::vector<ChangeStep> destroy_instances;
  std::vector<ChangeStep> create;
};

void add_removal(const gpu::GpuState& state, const gpu::GpuInstance& instance, Phases& phases) {
  const std::string name = place_name(state, instance);
  for (const gpu::ComputeInstance& compute : instance.compute_instances) {
    phases.destroy_compute.emplace_back(DestroyCompute{instance.id, compute.id, name});
  }
  phases.destroy_instances.emplace_back(DestroyInstance{instance.id, name});
}

void add_inner_change(const gpu::GpuState& state, const gpu::GpuInstance& instance,
                      const std::vector<unsigned>& wanted, Phases& phases) {
  const ComputeChange change = compute_change(state, instance, wanted);
  const std::string name = place_name(state, instance);
  for (const gpu::ComputeInstanceId id : change.destroy) {
    phases.destroy_compute.emplace_back(DestroyCompute{instance.id, id, name});
  }
  for (const unsigned slices : change.create) {
    phases.create.emplace_back(CreateCompute{instance.id, slices, name});
  }
}

bool exists(const gpu::GpuState& state, const LayoutInstance& wanted) {
  return std::any_of(state.instances.begin(), state.instances.end(), [&](const auto& instance) {
    return instance.profile_id == wanted.profile_id && instance.placement == wanted.placement;
  });
}

void add_creations(const gpu::GpuState& state, const Layout& goal, Phases& phases, StepList& list) {
  std::vector<const LayoutInstance*> missing;
  for (const LayoutInstance& wanted : goal.instances) {
    if (!exists(state, wanted)) {
      missing.push_back(&wanted);
    }
  }
  std::stable_sort(missing.begin(), missing.end(), [](const auto* a, const auto* b) {
    return a->placement.size > b->placement.size;
  });
  for (const LayoutInstance* wanted : missing) {
    const std::string name = fmt::format("{}@{}", wanted->profile, wanted->placement.start);
    phases.create.emplace_back(CreateInstance{wanted->profile_id, wanted->placement, name});
    list.hidden_steps += wanted->compute.size();
  }
}

void append(std::vector<ChangeStep>& to, std::vector<ChangeStep>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

StepList steps_to(const gpu::GpuState& observed, const Layout& goal, const Layout& ours) {
  StepList list;
  Phases phases;
  const bool on = goal.mode == gpu::MigMode::kEnabled;
  const bool mode_differs = observed.mig_current != goal.mode || observed.mig_pending != goal.mode;
  if (on && mode_differs) {
    list.steps.emplace_back(SetMode{goal.mode});
  }
  for (const gpu::GpuInstance& instance : observed.instances) {
    if (const LayoutInstance* wanted = find_place(goal, instance); on && wanted != nullptr) {
      add_inner_change(observed, instance, wanted->compute, phases);
    } else if (find_place(ours, instance) != nullptr || find_place(goal, instance) != nullptr) {
      add_removal(observed, instance, phases);
    } else {
      list.foreign.push_back(place_name(observed, instance));
    }
  }
  if (on) {
    add_creations(observed, goal, phases, list);
  }
  append(list.steps, phases.destroy_compute);
  append(list.steps, phases.destroy_instances);
  append(list.steps, phases.create);
  if (!on && mode_differs) {
    list.steps.emplace_back(SetMode{goal.mode});
  }
  return list;
}

bool destroys_anything(const StepList& list) {
  return std::any_of(list.steps.begin(), list.steps.end(), [](const ChangeStep& step) {
    return std::holds_alternative<DestroyCompute>(step) ||
           std::holds_alternative<DestroyInstance>(step);
  });
}

std::string to_string(const ChangeStep& step) {
  struct Words {
    std::string operator()(const SetMode& s) const {
      return s.mode == gpu::MigMode::kEnabled ? "enable MIG mode" : "disable MIG mode";
    }
    std::string operator()(const DestroyCompute& s) const {
      return fmt::format("destroy compute instance {} of {} (GPU instance {})", s.compute.value(),
                         s.name, s.instance.value());
    }
    std::string operator()(const DestroyInstance& s) const {
      return fmt::format("destroy GPU instance {} (id {})", s.name, s.instance.value());
    }
    std::string operator()(const CreateInstance& s) const {
      return fmt::format("create GPU instance {}", s.name);
    }
    std::string operator()(const CreateCompute& s) const {
      return fmt::format("create a compute instance of {} in {} (GPU instance {})",
                         s.slices == 1 ? "1 slice" : fmt::format("{} slices", s.slices), s.name,
                         s.instance.value());
    }
  };
  return std::visit(Words{}, step);
}

}  // namespace septet::partition
