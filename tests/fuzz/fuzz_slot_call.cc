// The message of a gRPC call in a slot of shared memory, from a client: taken apart by hand it is
// what protobuf takes it for.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "inference/slot_call.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace septet::inference;  // NOLINT: a fuzz target is all about one namespace
  constexpr std::size_t kPrefixBytes = 5;
  const google::protobuf::LogSilencer quiet;
  const std::string_view framed(reinterpret_cast<const char*>(data), size);
  const auto first = first_tensor_at(framed);
  CHECK(!first || *first <= size);
  const auto split = split_infer_message(std::as_bytes(std::span(data, size)));
  if (!split) {
    return 0;
  }
  ::inference::ModelInferRequest whole;
  ::inference::ModelInferRequest rest;
  const bool whole_is_good =
      whole.ParseFromArray(data + kPrefixBytes, static_cast<int>(size - kPrefixBytes));
  if (!whole_is_good || !rest.ParseFromString(split->rest)) {
    return 0;  // refused, by one as by the other
  }
  CHECK(static_cast<std::size_t>(whole.raw_input_contents_size()) == split->tensors.size());
  for (std::size_t i = 0; i < split->tensors.size(); ++i) {
    const std::span<const std::byte> tensor = split->tensors[i];
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.size());
    CHECK(whole.raw_input_contents(static_cast<int>(i)) == bytes);
    CHECK(i > 0 || (first && framed.substr(*first, bytes.size()) == bytes));
  }
  whole.clear_raw_input_contents();
  CHECK(rest.raw_input_contents_size() == 0 || split->tensors.empty());
  CHECK(whole.SerializeAsString().size() == rest.SerializeAsString().size());
  return 0;
}
