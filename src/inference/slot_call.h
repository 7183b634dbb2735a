// A gRPC ModelInfer call whose request message lies in a slot of shared memory (slot_message.h).
//
//   POST /inference.GRPCInferenceService/ModelInfer HTTP/1.1     the slot: the message, with the
//   Septet-Slot: 1 REGION_BYTES OFFSET LENGTH                    prefix that gRPC gives it
//
//   HTTP/1.1 200 OK                                              body: the ModelInferResponse
//   grpc-status: 0                                               without a prefix, or the error's
//                                                                text
//
// It goes over the connections that requests over HTTP go, so that what holds for their slots
// holds for its. A server says that it takes such calls with a field of its own. The messages are
// protobuf, of which only the outermost fields are looked at here. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace septet::inference {

inline constexpr std::string_view kSlotCallsField = "Septet-Slot-Calls";
inline constexpr std::string_view kSlotCallTarget = "/inference.GRPCInferenceService/ModelInfer";
inline constexpr std::string_view kGrpcStatusField = "grpc-status";

// A ModelInferRequest apart from the raw bytes of its tensors.
struct SplitMessage {
  std::string rest;                                 // a message without raw_input_contents
  std::vector<std::span<const std::byte>> tensors;  // raw_input_contents, where they lie
};

// Of a message with its prefix, in memory that another process may change meanwhile: what is relied
// upon is read once. Nothing when the prefix is not that of one uncompressed message of that
// length, or a field passes the end.
std::optional<SplitMessage> split_infer_message(std::span<const std::byte> framed);

// How far behind the beginning (the prefix included) the first tensor's bytes are; nothing when
// they do not begin within the bytes given.
std::optional<std::size_t> first_tensor_at(std::string_view framed_beginning);

}  // namespace septet::inference
