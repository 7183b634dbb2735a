#include "balance/grpc_route.h"

#include <algorithm>
#include <array>
#include <utility>

#include "balance/protobuf_fields.h"
#include "base/text.h"

namespace septet::balance {

namespace {

constexpr std::string_view kInference = "/inference.GRPCInferenceService/";
constexpr std::string_view kHealth = "/grpc.health.v1.Health/";
constexpr std::uint64_t kDaySeconds = 24ULL * 3600;

// All unary methods of the service; the others (ModelStreamInfer) are streams.
constexpr std::array<std::pair<std::string_view, GrpcKind>, 19> kMethods = {{
    {"ModelInfer", GrpcKind::kInfer},
    {"ServerLive", GrpcKind::kLive},
    {"ServerReady", GrpcKind::kReady},
    {"ServerMetadata", GrpcKind::kAnyReplica},
    {"ModelReady", GrpcKind::kAnyReplica},
    {"ModelMetadata", GrpcKind::kAnyReplica},
    {"ModelConfig", GrpcKind::kAnyReplica},
    {"ModelStatistics", GrpcKind::kStatistics},
    {"RepositoryIndex", GrpcKind::kRepositoryIndex},
    {"RepositoryModelLoad", GrpcKind::kEveryReplica},
    {"RepositoryModelUnload", GrpcKind::kEveryReplica},
    {"SystemSharedMemoryStatus", GrpcKind::kAnyReplica},
    {"SystemSharedMemoryRegister", GrpcKind::kEveryReplica},
    {"SystemSharedMemoryUnregister", GrpcKind::kEveryReplica},
    {"CudaSharedMemoryStatus", GrpcKind::kAnyReplica},
    {"CudaSharedMemoryRegister", GrpcKind::kEveryReplica},
    {"CudaSharedMemoryUnregister", GrpcKind::kEveryReplica},
    // Reading them is asking for no change, which does every replica no harm.
    {"TraceSetting", GrpcKind::kEveryReplica},
    {"LogSettings", GrpcKind::kEveryReplica},
}};

bool is_plain(char c) { return c >= 0x20 && c <= 0x7E && c != '%'; }

}  // namespace

// gRPC-Web is another protocol, of HTTP/1.1's kind.
bool is_grpc(const FieldList& head) {
  constexpr std::string_view kType = "application/grpc";
  const std::string_view type = head.find("content-type");
  return head.find(":method") == "POST" && type.starts_with(kType) &&
         (type.size() == kType.size() || type[kType.size()] == '+' || type[kType.size()] == ';');
}

GrpcKind find_grpc_kind(std::string_view path) {
  if (path.starts_with(kHealth)) {
    path.remove_prefix(kHealth.size());
    return path == "Check"   ? GrpcKind::kHealthCheck
           : path == "Watch" ? GrpcKind::kNotServed
                             : GrpcKind::kStream;
  }
  if (!path.starts_with(kInference)) {
    return GrpcKind::kStream;
  }
  path.remove_prefix(kInference.size());
  const auto* const found = std::find_if(kMethods.begin(), kMethods.end(),
                                         [path](const auto& entry) { return entry.first == path; });
  return found == kMethods.end() ? GrpcKind::kStream : found->second;
}

std::optional<std::uint64_t> framed_size(std::string_view bytes) {
  if (bytes.size() < kGrpcPrefixBytes) {
    return std::nullopt;
  }
  std::uint64_t length = 0;
  for (std::size_t i = 1; i < kGrpcPrefixBytes; ++i) {
    length = length << 8U | static_cast<std::uint8_t>(bytes[i]);
  }
  return kGrpcPrefixBytes + length;
}

std::string framed_message(std::string_view protobuf) {
  std::string message(1, '\0');
  for (unsigned shift = 32; shift > 0; shift -= 8) {
    message += static_cast<char>(protobuf.size() >> (shift - 8) & 0xFFU);
  }
  return message.append(protobuf);
}

std::string_view peek_model(std::string_view framed) {
  constexpr int kMaxFields = 8;
  const std::optional<std::uint64_t> size = framed_size(framed);
  if (!size || framed[0] != 0 || *size > framed.size()) {
    return {};
  }
  std::string_view left = framed.substr(kGrpcPrefixBytes, *size - kGrpcPrefixBytes);
  for (int i = 0; i < kMaxFields; ++i) {
    const std::optional<ProtobufField> field = take_field(left);
    if (!field || field->number == 1) {
      return field ? field->bytes : std::string_view{};
    }
  }
  return {};
}

std::optional<Duration> parse_grpc_timeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) {
    return std::nullopt;
  }
  const std::optional<std::uint64_t> count = parse_uint(text.substr(0, text.size() - 1));
  double unit_seconds = 0;
  switch (text.back()) {
    case 'H':
      unit_seconds = 3600;
      break;
    case 'M':
      unit_seconds = 60;
      break;
    case 'S':
      unit_seconds = 1;
      break;
    case 'm':
      unit_seconds = 1e-3;
      break;
    case 'u':
      unit_seconds = 1e-6;
      break;
    case 'n':
      unit_seconds = 1e-9;
      break;
    default:
      return std::nullopt;
  }
  const double wanted_s = static_cast<double>(count.value_or(0)) * unit_seconds;
  if (!count || wanted_s > static_cast<double>(kDaySeconds)) {
    return std::nullopt;
  }
  return from_seconds(wanted_s);
}

std::string grpc_timeout_text(Duration left) {
  const auto ms = static_cast<std::int64_t>(to_seconds(left) * 1e3);
  return std::to_string(std::clamp<std::int64_t>(ms, 1, 99'999'999)) + "m";
}

std::string grpc_message_text(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

GrpcStatus grpc_status_of_http(unsigned status) {
  switch (status) {
    case 200:
      return GrpcStatus::kOk;
    case 400:  // as releases up to 23.05 answer an unknown model over HTTP
    case 404:
      return GrpcStatus::kNotFound;
    case 413:
      return GrpcStatus::kResourceExhausted;
    case 501:
      return GrpcStatus::kUnimplemented;
    case 502:
      return GrpcStatus::kInternal;
    case 504:
      return GrpcStatus::kDeadlineExceeded;
    default:
      return GrpcStatus::kUnavailable;
  }
}

unsigned http_class_of_grpc(std::string_view grpc_status) {
  if (grpc_status == "0") {
    return 2;
  }
  // UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, DATA_LOSS
  constexpr std::array<std::string_view, 5> kServer = {"2", "4", "13", "14", "15"};
  return std::find(kServer.begin(), kServer.end(), grpc_status) != kServer.end() ? 5 : 4;
}

}  // namespace septet::balance
