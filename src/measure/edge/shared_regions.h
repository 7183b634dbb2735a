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
  struct Settings {
    std::vector<ServerAccess> servers;
    bool grpc = false;               // regions are registered by gRPC, else by HTTP
    std::uint64_t output_bytes = 0;  // of an output without a fixed size
  };
  // Moves every input of the streams into a region and lets every output be written into one.
  // kFailed with the server's words when it refuses.
  static Result<std::unique_ptr<SharedRegions>> create(RequestStreams& streams,
                                                       const ModelDescription& model,
                                                       Settings settings);
  ~SharedRegions();
  SharedRegions(const SharedRegions&) = delete;
  SharedRegions& operator=(const SharedRegions&) = delete;

 private:
  explicit SharedRegions(Settings settings);
  Result<inference::SharedMemoryRange> add(const std::string& name,
                                           std::span<const std::byte> content, std::uint64_t bytes);
  Result<Ok> register_region(const std::string& region, const std::string& key,
                             std::uint64_t bytes);
  Result<Ok> ask_to_register(const ServerAccess& server, const std::string& region,
                             const std::string& key, std::uint64_t bytes) const;

  Settings settings_;
  std::vector<std::string> keys_;     // shared memory objects that exist
  std::vector<std::string> regions_;  // registered with the servers
};

}  // namespace septet::measure
