// SharedRegions: POSIX shared memory that carries a load's tensors instead of the wire.
//
// Made once before a load: the inputs are written into regions of this process's own names, which
// are registered with every server; the requests then name the regions. Unregisters and removes
// them at the end of its life. The servers must run on this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/edge/model_query.h"
#include "measure/infer_input.h"

namespace septet::measure {

class SharedRegions {
 public:
  // Moves every input of the streams into a region and lets every output be written into one. An
  // output without a fixed size gets output_bytes. kFailed with the server's words when it refuses.
  static Result<std::unique_ptr<SharedRegions>> create(RequestStreams& streams,
                                                       const ModelDescription& model,
                                                       const std::vector<ServerAccess>& servers,
                                                       std::uint64_t output_bytes);
  ~SharedRegions();
  SharedRegions(const SharedRegions&) = delete;
  SharedRegions& operator=(const SharedRegions&) = delete;

 private:
  explicit SharedRegions(std::vector<ServerAccess> servers);
  Result<inference::SharedMemoryRange> add(const std::string& name,
                                           std::span<const std::byte> content, std::uint64_t bytes);
  Result<Ok> register_region(const std::string& region, const std::string& key,
                             std::uint64_t bytes);

  std::vector<ServerAccess> servers_;
  std::vector<std::string> keys_;     // shared memory objects that exist
  std::vector<std::string> regions_;  // registered with the servers
};

}  // namespace septet::measure
