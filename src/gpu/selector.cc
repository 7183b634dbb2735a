#include "gpu/selector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace septet::gpu {
namespace {

std::string list_of(const std::vector<GpuState>& gpus) {
  std::vector<std::string> words;
  for (const GpuState& gpu : gpus) {
    words.push_back(fmt::format("{} ({}, {})", gpu.index, gpu.name, gpu.pci_bus_id));
  }
  return words.empty() ? "there is none" : "there is " + join_words(words);
}

// "0000:07:00.0", "00000000:07:00.0" and "07:00.0" name one place in domain 0.
std::string bus_id_key(std::string_view bus_id) {
  std::string key = to_lower(bus_id);
  if (std::count(key.begin(), key.end(), ':') < 2) {
    return key;
  }
  key.erase(0, std::min(key.find_first_not_of('0'), key.find(':')));
  return key.starts_with(':') ? key.substr(1) : key;
}

bool is_bus_id(std::string_view text) {
  return std::count(text.begin(), text.end(), ':') >= 1 && text.find('.') != std::string_view::npos;
}

bool names_gpu(const GpuState& gpu, std::string_view selector) {
  if (const auto index = parse_uint(selector)) {
    return gpu.index == *index;
  }
  if (is_bus_id(selector)) {
    return bus_id_key(gpu.pci_bus_id) == bus_id_key(selector);
  }
  if (to_lower(selector).starts_with("gpu-")) {
    return equal_ignoring_case(gpu.uuid.value(), selector);
  }
  return !selector.empty() && to_lower(gpu.name).find(to_lower(selector)) != std::string::npos;
}

Error no_such(std::string_view what, std::string_view selector, const std::string& existing) {
  return make_error(ErrorKind::kNotFound, fmt::format("no {} '{}'; {}", what, selector, existing));
}

std::string partitions_of(const GpuState& gpu) {
  std::vector<std::string> words;
  for (const GpuInstance& instance : gpu.instances) {
    words.push_back(fmt::format("{}:{}", gpu.index, instance.id.value()));
  }
  return words.empty() ? fmt::format("GPU {} has no GPU instance", gpu.index)
                       : "there is " + join_words(words);
}

Result<PartitionRef> select_by_uuid(const std::vector<GpuState>& gpus, std::string_view uuid) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const GpuInstance& instance : gpus[i].instances) {
      for (const ComputeInstance& compute : instance.compute_instances) {
        if (equal_ignoring_case(compute.uuid.value(), uuid)) {
          return PartitionRef{i, instance.id, compute.id};
        }
      }
    }
  }
  return no_such("MIG device", uuid, "septet status lists what there is");
}

}  // namespace

Result<std::size_t> select_gpu(const std::vector<GpuState>& gpus, std::string_view selector) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (names_gpu(gpus[i], selector)) {
      found.push_back(i);
    }
  }
  if (found.empty()) {
    return no_such("GPU", selector, list_of(gpus));
  }
  if (found.size() > 1) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("'{}' names {} GPUs; {}", selector, found.size(), list_of(gpus)),
                      "name one by its index");
  }
  return found.front();
}

Result<std::vector<std::size_t>> select_gpus(const std::vector<GpuState>& gpus,
                                             std::string_view selectors) {
  std::vector<std::size_t> found;
  for (const std::string_view word : split(selectors, ',')) {
    const std::string_view selector = trim(word);
    bool any = false;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (selector == "all" || names_gpu(gpus[i], selector)) {
        found.push_back(i);
        any = true;
      }
    }
    if (!any) {
      return no_such("GPU", selector, list_of(gpus));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<PartitionRef> select_partition(const std::vector<GpuState>& gpus,
                                      std::string_view selector) {
  if (to_lower(selector).starts_with("mig-")) {
    return select_by_uuid(gpus, selector);
  }
  const auto parts = split(selector, ':');
  const auto number = [&](std::size_t i) { return parse_uint(parts[i]); };
  if (parts.size() < 2 || parts.size() > 3 || !number(0) || !number(1) ||
      (parts.size() == 3 && !number(2))) {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' names no partition", selector),
                      "write GPU:GI, GPU:GI:CI or MIG-UUID, as septet status shows them");
  }
  const auto gpu = select_gpu(gpus, parts[0]);
  if (!gpu.ok()) {
    return gpu.error();
  }
  for (const GpuInstance& instance : gpus[*gpu].instances) {
    if (instance.id.value() != *number(1)) {
      continue;
    }
    if (parts.size() == 2) {
      return PartitionRef{*gpu, instance.id, std::nullopt};
    }
    for (const ComputeInstance& compute : instance.compute_instances) {
      if (compute.id.value() == *number(2)) {
        return PartitionRef{*gpu, instance.id, compute.id};
      }
    }
  }
  return no_such("partition", selector, partitions_of(gpus[*gpu]));
}

}  // namespace septet::gpu
