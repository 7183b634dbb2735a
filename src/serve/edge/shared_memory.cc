#include "serve/edge/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace septet::serve {

using inference::InferRequest;
using inference::InferResponse;
using inference::Outcome;
using inference::SharedMemoryRange;
using inference::Status;
using inference::StatusCode;

namespace {

Status shrank(const std::string& region) {
  return inference::invalid_argument(
      fmt::format("shared memory region '{}' became smaller than it was registered", region));
}

}  // namespace

Outcome<Ok> SharedMemoryRegions::register_region(const SharedMemoryStatus& region) {
  const std::lock_guard lock(mutex_);
  if (regions_.contains(region.name)) {
    return Status{StatusCode::kAlreadyExists,
                  fmt::format("shared memory region '{}' already in manager", region.name)};
  }
  auto mapping = GuardedMapping::open(region.key, region.offset, region.byte_size);
  if (!mapping.ok()) {
    return inference::invalid_argument(mapping.error().text());
  }
  regions_[region.name] = Region{region, std::move(*mapping)};
  return Ok{};
}

void SharedMemoryRegions::unregister(const std::string& name) {
  const std::lock_guard lock(mutex_);
  regions_.erase(name);
}

void SharedMemoryRegions::unregister_all() {
  const std::lock_guard lock(mutex_);
  regions_.clear();
}

Outcome<std::vector<SharedMemoryStatus>> SharedMemoryRegions::status(
    const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<SharedMemoryStatus> all;
  for (const auto& [key, region] : regions_) {
    if (name.empty() || key == name) {
      all.push_back(region.status);
    }
  }
  if (all.empty() && !name.empty()) {
    return inference::not_found(
        fmt::format("Unable to find system shared memory region: '{}'", name));
  }
  return all;
}

Outcome<SharedMemoryRegions::Range> SharedMemoryRegions::find(
    const SharedMemoryRange& range) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(range.region);
  if (found == regions_.end()) {
    return inference::not_found(
        fmt::format("Unable to find shared memory region: '{}'", range.region));
  }
  const std::shared_ptr<GuardedMapping>& mapping = found->second.mapping;
  const std::size_t size = mapping->bytes().size();
  if (range.offset > size || range.byte_size > size - range.offset) {
    return inference::invalid_argument(
        fmt::format("Invalid offset + byte size for shared memory region: '{}': {} + {} is past "
                    "its {} bytes",
                    range.region, range.offset, range.byte_size, size));
  }
  return Range{mapping->bytes().subspan(range.offset, range.byte_size), mapping};
}

Outcome<Ok> SharedMemoryRegions::resolve_inputs(InferRequest& request) const {
  for (inference::InputTensor& input : request.inputs) {
    if (input.shared) {
      auto range = find(*input.shared);
      SEPTET_TRY(range);
      input.data = inference::Blob{range->bytes, range->mapping};
      if (input.datatype == inference::Datatype::kBytes) {
        // The client may change the lengths after they were checked.
        input.data = inference::own_bytes({range->bytes.begin(), range->bytes.end()});
      }
    }
  }
  return Ok{};
}

Outcome<Ok> SharedMemoryRegions::check_outputs(const InferRequest& request) const {
  for (const inference::RequestedOutput& output : request.outputs) {
    if (output.shared) {
      SEPTET_TRY(find(*output.shared));
    }
  }
  for (const inference::InputTensor& input : request.inputs) {
    if (input.shared) {
      auto range = find(*input.shared);
      if (range.ok() && range->mapping->is_broken()) {
        return shrank(input.shared->region);
      }
    }
  }
  return Ok{};
}

Outcome<Ok> SharedMemoryRegions::write_outputs(InferResponse& response) const {
  for (inference::OutputTensor& output : response.outputs) {
    if (!output.shared) {
      continue;
    }
    if (output.data.size() > output.shared->byte_size) {
      return inference::invalid_argument(
          fmt::format("shared memory size specified with the request for output '{}' ({} bytes) "
                      "should be at least {} bytes to hold the results",
                      output.name, output.shared->byte_size, output.data.size()));
    }
    auto range = find(*output.shared);
    SEPTET_TRY(range);
    std::copy(output.data.bytes.begin(), output.data.bytes.end(), range->bytes.begin());
    if (range->mapping->is_broken()) {
      return shrank(output.shared->region);
    }
    output.shared->byte_size = output.data.size();
    output.data = {};
  }
  return Ok{};
}

}  // namespace septet::serve
