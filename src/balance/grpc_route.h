// What a gRPC call is about, read from its path and the first bytes of its message; and the few
// words of gRPC that the proxy speaks itself (gRPC over HTTP/2, PROTOCOL-HTTP2.md).
//
//   message on the wire:  0 (not compressed) | length, 4 bytes big-endian | protobuf
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "balance/field_list.h"
#include "base/time.h"

namespace septet::balance {

enum class GrpcKind {
  kInfer,            // one request, to one replica; sent again when that dies
  kStream,           // everything that is not known: stays with one replica
  kLive,             // answered here
  kReady,            // answered here: a replica is ready
  kHealthCheck,      // the same, as the standard health service says it
  kAnyReplica,       // the first replica that has it
  kStatistics,       // summed over the replicas
  kRepositoryIndex,  // the union
  kEveryReplica,     // has to reach all
  kNotServed,        // health Watch: Triton has none either, and clients then go without
};

// Whether the head of an HTTP/2 request is that of a gRPC call.
bool is_grpc(const FieldList& head);
GrpcKind find_grpc_kind(std::string_view path);

constexpr std::size_t kGrpcPrefixBytes = 5;

// Bytes of the first message with its prefix; nothing until the prefix is complete.
std::optional<std::uint64_t> framed_size(std::string_view bytes);
std::string framed_message(std::string_view protobuf);

// The model that a ModelInferRequest names: its field 1, wherever it stands among the first fields.
// Empty when there is none, or the message is compressed or malformed.
std::string_view peek_model(std::string_view framed);

// The value of grpc-timeout; nothing when malformed or longer than a day.
std::optional<Duration> parse_grpc_timeout(std::string_view text);
// In milliseconds, at least one.
std::string grpc_timeout_text(Duration left);

// The value of grpc-message: percent-encoded.
std::string grpc_message_text(std::string_view text);

// Status codes as gRPC numbers them; those that the proxy gives itself.
enum class GrpcStatus : std::uint8_t {
  kOk = 0,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};
// For a status that the HTTP side would give.
GrpcStatus grpc_status_of_http(unsigned status);
// The class (2, 4 or 5) in which a reply with that grpc-status is counted.
unsigned http_class_of_grpc(std::string_view grpc_status);

}  // namespace septet::balance
