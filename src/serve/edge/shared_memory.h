// SharedMemoryRegions: the shared memory that clients have registered under a name.
//
// Any thread may call it. A region that is unregistered stays mapped until the last request that
// uses it is answered. Input tensors are read where they lie (strings are copied, for their lengths
// may not change once they were checked); outputs are written there once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "inference/tensor.h"
#include "serve/edge/guarded_mapping.h"

namespace septet::serve {

struct SharedMemoryStatus {
  std::string name{};
  std::string key{};
  std::uint64_t offset = 0;
  std::uint64_t byte_size = 0;
};

class SharedMemoryRegions {
 public:
  // kAlreadyExists when the name is in use; kInvalidArgument when the object cannot be mapped.
  [[nodiscard]] inference::Outcome<Ok> register_region(const SharedMemoryStatus& region);
  // Harmless when there is no such region.
  void unregister(const std::string& name);
  void unregister_all();
  // One region, or all when the name is empty. kNotFound when there is no such region.
  inference::Outcome<std::vector<SharedMemoryStatus>> status(const std::string& name) const;

  // Fills in the data of the inputs that lie in regions. kInvalidArgument when a range passes the
  // end of its region, kNotFound when there is none of that name.
  [[nodiscard]] inference::Outcome<Ok> resolve_inputs(inference::InferRequest& request) const;
  // Whether every region that the outputs name exists and is large enough to hold the range.
  [[nodiscard]] inference::Outcome<Ok> check_outputs(const inference::InferRequest& request) const;
  // Writes the outputs that belong into regions there. kInvalidArgument when one does not fit.
  [[nodiscard]] inference::Outcome<Ok> write_outputs(inference::InferResponse& response) const;

 private:
  struct Region {
    SharedMemoryStatus status{};
    std::shared_ptr<GuardedMapping> mapping{};
  };
  struct Range {
    std::span<std::byte> bytes{};
    std::shared_ptr<GuardedMapping> mapping{};
  };
  inference::Outcome<Range> find(const inference::SharedMemoryRange& range) const;

  mutable std::mutex mutex_;
  std::map<std::string, Region> regions_;
};

}  // namespace septet::serve
