// An infer request's JSON whose tensors lie in a region of shared memory that the replica knows by
// name (the protocol's system shared memory extension) instead of behind the JSON.
//
//   "parameters":{"binary_data_size":64}   becomes
//   "parameters":{"shared_memory_region":"NAME","shared_memory_byte_size":64,
//                 "shared_memory_offset":OFFSET}
//
// Pure text. Everything else stays byte for byte: the replica judges it, not the proxy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace septet::balance {

// What the names of the proxy's regions begin with.
inline constexpr const char* kRegionPrefix = "septet-slots";

struct TensorPlace {
  std::string_view region;         // letters, digits and -
  std::uint64_t offset = 0;        // of the first tensor in the region
  std::uint64_t tensor_bytes = 0;  // all together
};

// Appends the JSON so changed. False, and nothing appended, unless the sizes that were found in the
// inputs account for every byte of the tensors: then the request has to be sent as it is.
bool append_shared_request(std::string& out, std::string_view json, const TensorPlace& place);

}  // namespace septet::balance
