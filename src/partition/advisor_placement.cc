#include "partition/advisor_placement.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace septet::partition {

namespace {

using Profile = gpu::GpuInstanceProfile;

unsigned units_of(const Profile& profile) {
  return profile.placements.empty() ? 0 : profile.placements.front().size;
}

// Profiles with an attribute (+me, +gfx, -me) are for special work; smallest first.
std::vector<const Profile*> plain_profiles(const Node& node) {
  std::vector<const Profile*> plain;
  for (const Profile& profile : node.profiles) {
    if (profile.name.find_first_of("+-") == std::string::npos) {
      plain.push_back(&profile);
    }
  }
  std::stable_sort(plain.begin(), plain.end(), [](const Profile* a, const Profile* b) {
    return std::tuple(units_of(*a), a->engines.multiprocessors, a->memory_mib) <
           std::tuple(units_of(*b), b->engines.multiprocessors, b->memory_mib);
  });
  return plain;
}

enum class Match { kMemoryAndCompute, kMemoryOnly };

const Profile* smallest_for(const std::vector<const Profile*>& profiles, const Job& job,
                            std::int64_t context_mib, Match match) {
  for (const Profile* profile : profiles) {
    if (profile->memory_mib >= job.memory_mib + context_mib &&
        (match == Match::kMemoryOnly || profile->engines.multiprocessors >= job.multiprocessors)) {
      return profile;
    }
  }
  return nullptr;
}

// Depth-first over the wanted profiles, biggest first; equal neighbours take ascending starts, so
// no permutation is tried twice.
class Search {
 public:
  explicit Search(std::vector<const Profile*> wanted) : wanted_(std::move(wanted)) {
    std::stable_sort(wanted_.begin(), wanted_.end(), [](const Profile* a, const Profile* b) {
      return units_of(*a) > units_of(*b);
    });
  }

  bool run() { return within_limits() && place(0); }

  std::vector<PlannedInstance> instances() const {
    std::vector<PlannedInstance> result;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      result.push_back({wanted_[i]->name, taken_[i], 1});
    }
    return result;
  }

 private:
  // Cheap refusals before any search: too many units, too many of one profile.
  bool within_limits() const {
    unsigned units = 0;
    unsigned total = 0;
    for (const Profile* profile : wanted_) {
      units += units_of(*profile);
      for (const gpu::Placement& placement : profile->placements) {
        total = std::max(total, placement.end());
      }
      if (std::count(wanted_.begin(), wanted_.end(), profile) > profile->max_instances) {
        return false;
      }
    }
    return !wanted_.empty() && units <= total;
  }

  bool place(std::size_t depth) {
    if (depth == wanted_.size()) {
      return true;
    }
    const bool same_as_last = depth > 0 && wanted_[depth] == wanted_[depth - 1];
    for (const gpu::Placement& placement : wanted_[depth]->placements) {
      const bool used = std::any_of(taken_.begin(), taken_.end(),
                                    [&](const auto& other) { return other.overlaps(placement); });
      if (used || (same_as_last && placement.start < taken_.back().start)) {
        continue;
      }
      taken_.push_back(placement);
      if (place(depth + 1)) {
        return true;
      }
      taken_.pop_back();
    }
    return false;
  }

  std::vector<const Profile*> wanted_;
  std::vector<gpu::Placement> taken_;
};

}  // namespace

ProfileChoice choose_profiles(const Node& node, const std::vector<Job>& jobs) {
  const std::vector<const Profile*> profiles = plain_profiles(node);
  ProfileChoice choice;
  for (const Match match : {Match::kMemoryAndCompute, Match::kMemoryOnly}) {
    std::vector<const Profile*> per_job;
    for (const Job& job : jobs) {
      if (const Profile* profile = smallest_for(profiles, job, node.context_mib, match)) {
        per_job.push_back(profile);
      }
    }
    if (per_job.size() != jobs.size()) {
      continue;
    }
    Search search(per_job);
    choice.per_job = std::move(per_job);
    if (search.run()) {
      choice.instances = search.instances();
      return choice;
    }
  }
  return choice;
}

HybridChoice choose_hybrid(const Node& node, const std::vector<Job>& jobs) {
  std::int64_t largest = 0;
  for (const Job& job : jobs) {
    largest = std::max(largest, job.memory_mib);
  }
  const auto count = static_cast<unsigned>(jobs.size());
  for (const Profile* profile : plain_profiles(node)) {
    if (profile->max_instances == 0) {
      continue;
    }
    const unsigned each = (count + profile->max_instances - 1) / profile->max_instances;
    if (each <= 1 || each * (largest + node.context_mib) > profile->memory_mib) {
      continue;
    }
    const unsigned needed = (count + each - 1) / each;
    Search search(std::vector<const Profile*>(needed, profile));
    if (!search.run()) {
      continue;
    }
    HybridChoice choice{profile, each, search.instances()};
    unsigned left = count;
    for (PlannedInstance& instance : choice.instances) {
      instance.tenants = std::min(each, left);
      left -= instance.tenants;
    }
    return choice;
  }
  return {};
}

}  // namespace septet::partition
