// SlotRegions: the shared memory of the proxies that put bodies into slots, mapped once each.
//
// Owned by an HttpServer, used by its thread. A region stays mapped while a connection or a request
// uses it: all connections of one proxy share the mapping, and with it the pages that are warm.
#pragma once

#include <memory>
#include <vector>

#include "os/sealed_memory.h"

namespace septet::serve {

class SlotRegions {
 public:
  // SealedMemory::open()'s errors.
  Result<std::shared_ptr<const os::SealedMemory>> open(const os::UniqueFd& fd, std::size_t bytes);

 private:
  struct Known {
    os::SealedMemory::Identity identity;
    std::weak_ptr<const os::SealedMemory> memory;
  };
  std::vector<Known> known_;
};

}  // namespace septet::serve
