#include "partition/mig_parted.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "partition/layout.h"
#include "partition/profile_choice.h"

namespace septet::partition {
namespace {

// "0x20B010DE" or "0x20B010DE:0x123410DE"; the subsystem is not known here and any will do.
bool filter_matches(const std::string& filter, const gpu::GpuState& state) {
  const std::string device = to_lower(filter.substr(0, filter.find(':')));
  return device == fmt::format("{:#010x}", state.pci_device_id) ||
         device == fmt::format("{:#x}", state.pci_device_id);
}

bool entry_matches(const MigPartedEntry& entry, const gpu::GpuState& state) {
  const auto& filters = entry.device_filters;
  const bool right_kind =
      filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const auto& filter) {
        return filter_matches(filter, state);
      });
  const auto& devices = entry.devices;
  return right_kind && (entry.all_devices ||
                        std::find(devices.begin(), devices.end(), state.index) != devices.end());
}

std::string counts_text(const DeviceCounts& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(fmt::format("{}:{}", name, count));
  }
  return parts.empty() ? "no MIG devices" : fmt::format("{}", fmt::join(parts, " "));
}

// Names that mean the same on this driver become one: its own.
DeviceCounts in_words_of(const DeviceCounts& counts, const gpu::GpuState& state) {
  DeviceCounts result;
  for (const auto& [name, count] : counts) {
    std::string own = name;
    const auto parsed = parse_profile_name(name);
    const auto selector = parse_profile_selector(name);
    if (parsed && selector.ok()) {
      if (const auto choice = choose_profiles(*selector, state.profiles); choice.ok()) {
        own = state.profiles[choice->profiles.front()].name;
        if (choice->compute_slices != 0) {
          own = fmt::format("{}c.{}", choice->compute_slices, own);
        }
      }
    }
    if (count > 0) {
      result[own] += count;
    }
  }
  return result;
}

std::string quoted_list(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) {
    quoted.push_back('"' + item + '"');
  }
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

}  // namespace

Result<const std::vector<MigPartedEntry>*> find_label(const MigPartedConfig& config,
                                                      const std::string& label) {
  std::vector<std::string> names;
  for (const auto& [name, entries] : config.labels) {
    if (name == label || (label.empty() && config.labels.size() == 1)) {
      return &entries;
    }
    names.push_back(name);
  }
  const auto nearest = nearest_name(label, names);
  return make_error(
      ErrorKind::kNotFound,
      label.empty() ? fmt::format("{} has {} labels", config.file, names.size())
                    : fmt::format("{} has no label '{}'", config.file, label),
      fmt::format("{}choose with -c one of {}",
                  nearest ? fmt::format("did you mean {}? ", *nearest) : "", join_words(names)));
}

std::optional<MigPartedGoal> goal_for(const std::vector<MigPartedEntry>& entries,
                                      const gpu::GpuState& state) {
  std::optional<MigPartedGoal> goal;
  for (const MigPartedEntry& entry : entries) {
    if (entry_matches(entry, state)) {
      goal = MigPartedGoal{entry.mig_enabled ? gpu::MigMode::kEnabled : gpu::MigMode::kDisabled,
                           entry.mig_devices, entry.line};
    }
  }
  return goal;
}

Want want_of(const MigPartedGoal& goal) {
  Want want;
  for (const auto& [name, count] : goal.counts) {
    auto selector = parse_profile_selector(name);
    CHECK(selector.ok());
    if (count > 0) {
      want.items.push_back({*std::move(selector), count, std::nullopt});
    }
  }
  return want;
}

DeviceCounts devices_of(const gpu::GpuState& state) {
  DeviceCounts counts;
  for (const LayoutInstance& instance : layout_of(state).instances) {
    const auto profile =
        std::find_if(state.profiles.begin(), state.profiles.end(),
                     [&](const auto& candidate) { return candidate.id == instance.profile_id; });
    for (const unsigned slices : instance.compute) {
      const bool whole = profile != state.profiles.end() && slices == profile->slices;
      ++counts[whole ? instance.profile : fmt::format("{}c.{}", slices, instance.profile)];
    }
  }
  return counts;
}

std::optional<std::string> difference(const MigPartedGoal& goal, const gpu::GpuState& state) {
  if (state.mig_current != goal.mode) {
    return fmt::format("GPU {}: MIG is {}, wanted {}", state.index,
                       state.mig_current == gpu::MigMode::kEnabled ? "on" : "off",
                       goal.mode == gpu::MigMode::kEnabled ? "on" : "off");
  }
  const DeviceCounts wanted = in_words_of(goal.counts, state);
  const DeviceCounts there = devices_of(state);
  if (goal.mode == gpu::MigMode::kEnabled && wanted != there) {
    return fmt::format("GPU {}: there is {}, wanted {}", state.index, counts_text(there),
                       counts_text(wanted));
  }
  return std::nullopt;
}

std::vector<MigPartedEntry> export_entries(const std::vector<gpu::GpuState>& states) {
  std::vector<MigPartedEntry> entries;
  const bool mixed = std::any_of(states.begin(), states.end(), [&](const gpu::GpuState& state) {
    return state.pci_device_id != states.front().pci_device_id;
  });
  for (const gpu::GpuState& state : states) {
    MigPartedEntry fresh;
    if (mixed) {
      fresh.device_filters = {fmt::format("0x{:08X}", state.pci_device_id)};
    }
    fresh.mig_enabled = state.mig_current == gpu::MigMode::kEnabled;
    fresh.mig_devices = devices_of(state);
    const auto same = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.device_filters == fresh.device_filters &&
             entry.mig_enabled == fresh.mig_enabled && entry.mig_devices == fresh.mig_devices;
    });
    if (same != entries.end()) {
      same->devices.push_back(state.index);
    } else {
      fresh.devices = {state.index};
      entries.push_back(std::move(fresh));
    }
  }
  if (entries.size() == 1) {
    entries.front().all_devices = true;
  }
  return entries;
}

std::string write_yaml(const std::string& label, const std::vector<MigPartedEntry>& entries) {
  std::string text = fmt::format("version: v1\nmig-configs:\n  {}:\n", label);
  for (const MigPartedEntry& entry : entries) {
    const std::string devices =
        entry.all_devices ? "all" : fmt::format("[{}]", fmt::join(entry.devices, ", "));
    const char* first = "  - ";
    if (!entry.device_filters.empty()) {
      text += fmt::format("  - device-filter: {}\n", quoted_list(entry.device_filters));
      first = "    ";
    }
    text += fmt::format("{}devices: {}\n    mig-enabled: {}\n", first, devices, entry.mig_enabled);
    if (!entry.mig_enabled) {
      continue;
    }
    text += entry.mig_devices.empty() ? "    mig-devices: {}\n" : "    mig-devices:\n";
    for (const auto& [name, count] : entry.mig_devices) {
      text += fmt::format("      \"{}\": {}\n", name, count);
    }
  }
  return text;
}

std::string write_json(const std::string& label, const std::vector<MigPartedEntry>& entries) {
  std::vector<std::string> parts;
  for (const MigPartedEntry& entry : entries) {
    std::string part = "{";
    if (!entry.device_filters.empty()) {
      part += fmt::format("\"device-filter\": {}, ", quoted_list(entry.device_filters));
    }
    part += entry.all_devices ? std::string("\"devices\": \"all\"")
                              : fmt::format("\"devices\": [{}]", fmt::join(entry.devices, ", "));
    part += fmt::format(", \"mig-enabled\": {}", entry.mig_enabled);
    if (entry.mig_enabled) {
      std::vector<std::string> counts;
      for (const auto& [name, count] : entry.mig_devices) {
        counts.push_back(fmt::format("\"{}\": {}", name, count));
      }
      part += fmt::format(", \"mig-devices\": {{{}}}", fmt::join(counts, ", "));
    }
    parts.push_back(part + "}");
  }
  return fmt::format("{{\"version\": \"v1\", \"mig-configs\": {{\"{}\": [{}]}}}}\n", label,
                     fmt::join(parts, ", "));
}

}  // namespace septet::partition
