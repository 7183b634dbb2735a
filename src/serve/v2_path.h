// The paths of the v2 protocol's HTTP interface, taken apart (inference protocol, section 1).
//
//   /v2/models/NAME/versions/VERSION/infer
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace septet::serve {

struct V2Path {
  enum class Kind {
    kLive,
    kReady,
    kServerMetadata,
    kModelMetadata,
    kModelReady,
    kModelConfig,
    kModelStatistics,
    kAllStatistics,
    kInfer,
    kRepositoryIndex,
    kRepositoryLoad,
    kRepositoryUnload,
    kSystemMemoryStatus,
    kSystemMemoryRegister,
    kSystemMemoryUnregister,
    kCudaMemoryStatus,
    kCudaMemoryRegister,
    kCudaMemoryUnregister,
    kTraceSetting,
    kLogging,
    kMetrics,
  };
  Kind kind = Kind::kLive;
  std::string model{};
  std::string version{};  // empty = none given
  std::string region{};   // shared memory; empty = all
};

// Nothing for a path that the protocol does not have. A query behind '?' is ignored; %XX is
// decoded inside a segment.
std::optional<V2Path> parse_v2_path(std::string_view target);

// The method that the path takes: "GET" or "POST"; trace setting and logging take both ("").
std::string_view method_of(V2Path::Kind kind);

}  // namespace septet::serve
