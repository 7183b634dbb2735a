#include "gpu/gpu_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/text.h"
#include "gpu/gpu_model_tables.h"

namespace septet::gpu {
namespace {

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, '|')) {
    words.emplace_back(word);
  }
  return words;
}

std::uint32_t hexadecimal(std::string_view text) {
  std::uint32_t value = 0;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  CHECK(parsed.ec == std::errc() && parsed.ptr == end);
  return value;
}

unsigned whole_number(std::string_view text) {
  const auto value = parse_uint(text);
  CHECK(value.has_value());
  return static_cast<unsigned>(*value);
}

// "0,2,4:2" -> {0,2}, {2,2}, {4,2}.
std::vector<Placement> placements_of(std::string_view text) {
  const auto parts = split(text, ':');
  CHECK(parts.size() == 2);
  const unsigned size = whole_number(parts[1]);
  std::vector<Placement> placements;
  for (const std::string_view start : split(parts[0], ',')) {
    placements.push_back({whole_number(start), size});
  }
  return placements;
}

GpuInstanceProfile profile_of(const ProfileRow& row) {
  GpuInstanceProfile profile;
  profile.nvml_enum = row.nvml_enum;
  profile.id = ProfileId(row.id);
  profile.name = row.name;
  profile.slices = row.slices;
  profile.max_instances = row.max_instances;
  profile.memory_mib = row.memory_mib;
  profile.engines = row.engines;
  profile.placements = placements_of(row.placements);
  return profile;
}

GpuModel model_of(const ModelRow& row) {
  GpuModel model;
  model.key = row.key;
  model.chip = row.chip;
  model.architecture = row.architecture;
  model.names = words_of(row.names);
  for (const std::string& id : words_of(row.pci_device_ids)) {
    model.pci_device_ids.push_back(hexadecimal(id));
  }
  model.compute_capability_major = row.compute_capability_major;
  model.compute_capability_minor = row.compute_capability_minor;
  model.memory_total_mib = row.memory_total_mib;
  model.placement_units = row.placement_units;
  model.compute_slices = row.compute_slices;
  model.mig = row.mig;
  model.instance_id_map = row.instance_id_map;
  model.has_rev1_compute_profile = row.has_rev1_compute_profile;
  model.first_driver_branch = row.first_driver_branch;
  model.provenance = row.provenance;
  std::transform(row.profiles.begin(), row.profiles.end(), std::back_inserter(model.profiles),
                 profile_of);
  return model;
}

std::vector<GpuModel> all_models() {
  std::vector<GpuModel> models;
  const auto rows = gpu_model_rows();
  std::transform(rows.begin(), rows.end(), std::back_inserter(models), model_of);
  return models;
}

constexpr std::string_view kVendor = "NVIDIA ";

bool is_called(const GpuModel& model, const ModelRow& row, std::string_view name) {
  if (equal_ignoring_case(name, model.key) || equal_ignoring_case(name, row.other_key)) {
    return true;
  }
  return std::any_of(model.names.begin(), model.names.end(), [&](const std::string& full) {
    return equal_ignoring_case(name, full) ||
           (full.starts_with(kVendor) && equal_ignoring_case(name, full.substr(kVendor.size())));
  });
}

// How many compute slices a compute profile takes, by NVML's enum; 0 = the whole GPU instance is
// not expressible.
struct ComputeSize {
  unsigned nvml_enum;
  unsigned slices;
};
constexpr ComputeSize kComputeSizes[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 7}};
constexpr unsigned kRev1Enum = 7;

}  // namespace

const std::vector<GpuModel>& gpu_models() {
  static const std::vector<GpuModel> models = all_models();
  return models;
}

Result<const GpuModel*> find_gpu_model(std::string_view name) {
  const auto rows = gpu_model_rows();
  const auto& models = gpu_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (is_called(models[i], rows[i], name)) {
      return &models[i];
    }
  }
  std::vector<std::string> keys;
  for (const GpuModel& model : models) {
    keys.push_back(model.key);
  }
  const auto nearest = nearest_name(name, keys);
  return make_error(ErrorKind::kNotFound,
                    fmt::format("no GPU model '{}'; there are {}", name, join_words(keys)),
                    nearest ? fmt::format("did you mean {}?", *nearest) : "");
}

const GpuInstanceProfile* find_profile(const GpuModel& model, ProfileId id) {
  const auto found = std::find_if(model.profiles.begin(), model.profiles.end(),
                                  [&](const GpuInstanceProfile& p) { return p.id == id; });
  return found == model.profiles.end() ? nullptr : &*found;
}

std::vector<ComputeInstanceProfile> compute_profiles(const GpuModel& model,
                                                     const GpuInstanceProfile& profile) {
  std::vector<ComputeInstanceProfile> result;
  const unsigned per_slice = model.profiles.empty() ? 0 : model.profiles[0].engines.multiprocessors;
  for (const ComputeSize& size : kComputeSizes) {
    if (size.slices > profile.slices) {
      continue;
    }
    const bool is_full = size.slices == profile.slices;
    // NVML offers 3c and 4c only inside the largest instance (documented tables).
    if (!is_full && size.slices > 2 && profile.slices < 7) {
      continue;
    }
    ComputeInstanceProfile compute;
    compute.nvml_enum = size.nvml_enum;
    compute.id = ProfileId(size.nvml_enum);
    compute.slices = size.slices;
    compute.max_instances = profile.slices / size.slices;
    compute.engines = profile.engines;
    if (!is_full) {
      compute.engines.multiprocessors = per_slice * size.slices;
    }
    compute.name = is_full ? profile.name : fmt::format("{}c.{}", size.slices, profile.name);
    result.push_back(std::move(compute));
  }
  if (model.has_rev1_compute_profile && profile.slices == 2) {
    // Seen on H100: a second 1c with the 26 processors of the double-memory profile.
    ComputeInstanceProfile rev1 = result.front();
    rev1.nvml_enum = kRev1Enum;
    rev1.id = ProfileId(kRev1Enum);
    rev1.max_instances = 1;
    rev1.engines.multiprocessors = 26;
    result.push_back(std::move(rev1));
  }
  return result;
}

}  // namespace septet::gpu
