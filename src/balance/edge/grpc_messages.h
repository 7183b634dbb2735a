// The few protobuf messages that the proxy reads and writes itself: statistics and the index, which
// are asked for and merged over HTTP (one sum for both protocols), and the shortest of replies.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace septet::balance {

// A gRPC question in HTTP's words.
struct GrpcQuestion {
  std::string model;
  std::string version;
  std::string head;
  std::string body;
};

// Of a framed ModelStatisticsRequest, RepositoryIndexRequest; nothing when malformed.
std::optional<GrpcQuestion> read_statistics_question(std::string_view framed);
std::optional<GrpcQuestion> read_index_question(std::string_view framed);

// The protobuf of the reply, from the JSON of the merged one; nothing when it cannot be.
std::optional<std::string> statistics_reply(std::string_view json);
std::optional<std::string> index_reply(std::string_view json);
// The text of {"error":"text"}.
std::string error_text(std::string_view json);

// A framed SystemSharedMemoryStatusResponse without the proxy's own regions (foreign_memory.h);
// what is none stays as it is.
std::string without_own_regions_framed(std::string_view framed);

// ServerLiveResponse and ServerReadyResponse; HealthCheckResponse.
std::string truth_reply(bool truth);
std::string health_reply(bool serving);

}  // namespace septet::balance
