#include "agent/experiment_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "agent/slice_share.h"
#include "base/check.h"
#include "base/text.h"

namespace septet::agent {
namespace {

constexpr std::array kSharings = {Sharing::kMig, Sharing::kTimeSlicing, Sharing::kStreams};
constexpr int kMostReplicas = 64;
constexpr int kMostConcurrency = 4096;

struct LeftOut {
  const char* word;
  const char* why;
};

// Techniques that exist but that this experiment cannot run, and why.
constexpr std::array kCannotRun = {
    LeftOut{"mps",
            "MPS shares a real GPU's processors between processes; nothing here stands in "
            "for it"},
    LeftOut{"vgpu", "vGPU needs a hypervisor and a licence"},
    LeftOut{"mig-mps", "MPS inside a partition needs a real GPU"},
};

std::vector<std::string> known_words() {
  std::vector<std::string> words;
  for (const Sharing sharing : kSharings) {
    words.emplace_back(to_string(sharing));
  }
  for (const LeftOut& other : kCannotRun) {
    words.emplace_back(other.word);
  }
  return words;
}

std::optional<Sharing> find_sharing(const std::string& word) {
  for (const Sharing sharing : kSharings) {
    if (word == to_string(sharing)) {
      return sharing;
    }
  }
  return std::nullopt;
}

// Sorts the wanted techniques into those that run and notes about those that do not.
Result<std::vector<Sharing>> choose(const ExperimentRequest& request,
                                    const ExperimentDevice& device,
                                    std::vector<std::string>& notes) {
  const std::vector<std::string> wanted =
      request.techniques.empty() ? std::vector<std::string>{"mig", "time-slicing", "streams", "mps"}
                                 : request.techniques;
  std::vector<Sharing> chosen;
  for (const std::string& typed : wanted) {
    const std::string word = to_lower(typed);
    const auto other = std::find_if(kCannotRun.begin(), kCannotRun.end(),
                                    [&](const LeftOut& entry) { return word == entry.word; });
    const std::optional<Sharing> sharing = find_sharing(word);
    if (other != kCannotRun.end()) {
      notes.push_back(fmt::format("Left out: {}, because {}.", other->word, other->why));
    } else if (!sharing) {
      const auto nearest = nearest_name(word, known_words());
      return make_error(ErrorKind::kUsage, fmt::format("there is no technique '{}'", typed),
                        nearest ? fmt::format("did you mean '{}'?", *nearest)
                                : fmt::format("there are {}", join_words(known_words())));
    } else if (*sharing == Sharing::kMig && !device.supports_mig) {
      notes.emplace_back("Left out: mig, because this GPU cannot be partitioned.");
    } else if (std::find(chosen.begin(), chosen.end(), *sharing) == chosen.end()) {
      chosen.push_back(*sharing);
    }
  }
  if (chosen.empty()) {
    return make_error(ErrorKind::kPrecondition,
                      "no technique that was asked for can run here. " + notes.front(),
                      "Ask for mig, time-slicing or streams");
  }
  return chosen;
}

void add_simulation_notes(const std::vector<Sharing>& sharings, const ExperimentDevice& device,
                          const std::vector<std::string>& profiles,
                          std::vector<std::string>& notes) {
  if (!device.simulated) {
    return;
  }
  if (!device.limited) {
    notes.emplace_back(
        "Simulated without limits: no control groups could be made here, so every replica could "
        "use the whole machine.");
    return;
  }
  for (const Sharing sharing : sharings) {
    switch (sharing) {
      case Sharing::kMig:
        notes.push_back(fmt::format(
            "Simulated: mig. Each replica runs in a control group with the share of the machine's "
            "processors and memory that a {} slice has of the GPU.",
            profiles.empty() ? device.smallest_profile : join_words(profiles)));
        break;
      case Sharing::kTimeSlicing:
        notes.emplace_back(
            "Simulated: time-slicing. All replicas share one control group with the whole "
            "device's processors and memory; the kernel's scheduler takes turns between them, "
            "which costs less than a GPU's context switches.");
        break;
      case Sharing::kStreams:
        notes.emplace_back(
            "Simulated: streams. One server process with so many instances of the model has the "
            "whole device; its threads stand for CUDA streams.");
        break;
    }
  }
}

Result<Ok> check_numbers(const std::vector<int>& numbers, const char* what, int most) {
  if (numbers.empty() || numbers.front() < 1 || numbers.back() > most) {
    return make_error(ErrorKind::kUsage, fmt::format("{} must be from 1 to {}", what, most));
  }
  return Ok{};
}

}  // namespace

const char* to_string(Sharing sharing) {
  switch (sharing) {
    case Sharing::kMig:
      return "mig";
    case Sharing::kTimeSlicing:
      return "time-slicing";
    case Sharing::kStreams:
      return "streams";
  }
  return "unknown";
}

std::string PlannedConfiguration::name() const {
  return profile.empty() ? fmt::format("{}-{}", to_string(sharing), replicas)
                         : fmt::format("{}-{}-{}", to_string(sharing), profile, replicas);
}

ExperimentDevice experiment_device(const gpu::GpuState& state, bool simulated) {
  ExperimentDevice device;
  device.simulated = simulated;
  if (const gpu::GpuInstanceProfile* smallest = smallest_profile(state)) {
    device.supports_mig = true;
    device.most_partitions = smallest->max_instances;
    device.smallest_profile = smallest->name;
  }
  for (const gpu::GpuInstanceProfile& profile : state.profiles) {
    device.profiles.emplace_back(profile.name, profile.max_instances);
  }
  return device;
}

namespace {

// Partitions of one profile: so many at once as was asked for, or as fit.
void plan_partitions(const std::string& profile, unsigned room, const ExperimentRequest& request,
                     ExperimentPlan& plan) {
  const std::vector<int> full = {static_cast<int>(room)};
  for (const int replicas : request.replicas.empty() ? full : request.replicas) {
    if (replicas > static_cast<int>(room)) {
      plan.notes.push_back(fmt::format(
          "Left out: mig with {} replicas, because the GPU has room for {} {} partitions.",
          replicas, room, profile));
    } else {
      plan.configurations.push_back(
          {Sharing::kMig, replicas, request.profiles.empty() ? std::string() : profile});
    }
  }
}

Result<Ok> plan_profiles(const ExperimentRequest& request, const ExperimentDevice& device,
                         ExperimentPlan& plan) {
  if (request.profiles.empty()) {
    plan_partitions(device.smallest_profile, device.most_partitions, request, plan);
  }
  for (const std::string& word : request.profiles) {
    const auto known = std::find_if(device.profiles.begin(), device.profiles.end(),
                                    [&](const auto& profile) { return profile.first == word; });
    if (known == device.profiles.end()) {
      std::vector<std::string> names;
      for (const auto& [name, room] : device.profiles) {
        names.push_back(name);
      }
      return make_error(ErrorKind::kUsage, fmt::format("this GPU has no profile '{}'", word),
                        names.empty() ? "it cannot be partitioned"
                                      : fmt::format("there are {}", join_words(names)));
    }
    plan_partitions(known->first, known->second, request, plan);
  }
  return Ok{};
}

}  // namespace

Result<ExperimentPlan> plan_experiment(const ExperimentRequest& request,
                                       const ExperimentDevice& device) {
  if (!request.replicas.empty() || request.profiles.empty()) {
    SEPTET_TRY(check_numbers(request.replicas, "replicas", kMostReplicas));
  }
  SEPTET_TRY(check_numbers(request.concurrency, "concurrency", kMostConcurrency));
  ExperimentPlan plan;
  plan.concurrency = request.concurrency;
  const Result<std::vector<Sharing>> sharings = choose(request, device, plan.notes);
  if (!sharings.ok()) {
    return sharings.error();
  }
  const std::vector<int> room = {static_cast<int>(device.most_partitions)};
  for (const Sharing sharing : *sharings) {
    if (sharing == Sharing::kMig) {
      SEPTET_TRY(plan_profiles(request, device, plan));
      continue;
    }
    const std::vector<int>& wanted = request.replicas.empty() ? room : request.replicas;
    for (const int replicas : wanted) {
      if (!request.undivided_at_most_only || replicas == wanted.back()) {
        plan.configurations.push_back({sharing, replicas});
      }
    }
  }
  if (plan.configurations.empty()) {
    return make_error(ErrorKind::kPrecondition, "nothing is left to measure: " + plan.notes.back());
  }
  add_simulation_notes(*sharings, device, request.profiles, plan.notes);
  return plan;
}

Result<std::vector<int>> parse_numbers(std::string_view text, std::string_view what) {
  const Error wrong =
      make_error(ErrorKind::kUsage, fmt::format("{} '{}' is no list of numbers", what, text),
                 "write 7, 1,2,4,7 or 1:7 (begin:end, and :step if not 1)");
  std::vector<int> numbers;
  for (const std::string_view piece : split(text, ',')) {
    std::vector<int> parts;
    for (const std::string_view part : split(piece, ':')) {
      const auto number = parse_int(part);
      if (!number || *number < 1 || *number > kMostConcurrency) {
        return wrong;
      }
      parts.push_back(static_cast<int>(*number));
    }
    if (parts.size() > 3 || (parts.size() > 1 && parts[1] < parts[0])) {
      return wrong;
    }
    const int end = parts.size() > 1 ? parts[1] : parts[0];
    const int step = parts.size() > 2 ? parts[2] : 1;
    for (int number = parts[0]; number <= end; number += step) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

TimeLeft::TimeLeft(const ExperimentPlan& plan, Duration expected_set_up, Duration expected_cell)
    : set_ups_(plan.configurations.size()),
      cells_(plan.cells()),
      expected_set_up_(expected_set_up),
      expected_cell_(expected_cell) {}

void TimeLeft::set_up_done(Duration took) {
  ++set_ups_done_;
  set_up_time_ += took;
}

void TimeLeft::cell_done(Duration took) {
  ++cells_done_;
  cell_time_ += took;
}

void TimeLeft::cells_skipped(std::size_t count) { cells_skipped_ += count; }

Duration TimeLeft::left() const {
  // What was expected counts like one measurement, so the first surprise does not swing it.
  const auto mean = [](Duration expected, Duration sum, std::size_t count) {
    return (expected + sum) / static_cast<std::int64_t>(count + 1);
  };
  CHECK(set_ups_done_ <= set_ups_ && cells_done_ + cells_skipped_ <= cells_);
  return mean(expected_set_up_, set_up_time_, set_ups_done_) *
             static_cast<std::int64_t>(set_ups_ - set_ups_done_) +
         mean(expected_cell_, cell_time_, cells_done_) *
             static_cast<std::int64_t>(cells_ - cells_done_ - cells_skipped_);
}

}  // namespace septet::agent
