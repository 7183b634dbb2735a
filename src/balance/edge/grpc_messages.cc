#include "balance/edge/grpc_messages.h"

#include <google/protobuf/util/json_util.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "balance/grpc_route.h"
#include "balance/shared_request.h"
#include "inference/edge/proto/grpc_service.pb.h"

namespace septet::balance {

namespace {

constexpr std::string_view kHostLine = " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: septet\r\n";

template <typename Message>
std::optional<Message> parse(std::string_view framed) {
  Message message;
  if (framed.size() < kGrpcPrefixBytes || framed[0] != 0) {
    return std::nullopt;
  }
  framed.remove_prefix(kGrpcPrefixBytes);
  if (!message.ParseFromArray(framed.data(), static_cast<int>(framed.size()))) {
    return std::nullopt;
  }
  return message;
}

template <typename Message>
std::optional<std::string> from_json(const std::string& json) {
  Message message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  if (!google::protobuf::util::JsonStringToMessage(json, &message, options).ok()) {
    return std::nullopt;
  }
  return message.SerializeAsString();
}

}  // namespace

std::optional<GrpcQuestion> read_statistics_question(std::string_view framed) {
  const auto message = parse<::inference::ModelStatisticsRequest>(framed);
  if (!message) {
    return std::nullopt;
  }
  return GrpcQuestion{message->name(), message->version(), {}, {}};
}

std::optional<GrpcQuestion> read_index_question(std::string_view framed) {
  const auto message = parse<::inference::RepositoryIndexRequest>(framed);
  if (!message) {
    return std::nullopt;
  }
  GrpcQuestion question;
  question.body = message->ready() ? R"({"ready":true})" : "{}";
  question.head = "POST /v2/repository/index" + std::string(kHostLine) +
                  "Content-Length: " + std::to_string(question.body.size()) + "\r\n\r\n";
  return question;
}

std::optional<std::string> statistics_reply(std::string_view json) {
  return from_json<::inference::ModelStatisticsResponse>(std::string(json));
}

std::optional<std::string> index_reply(std::string_view json) {
  return from_json<::inference::RepositoryIndexResponse>("{\"models\":" + std::string(json) + "}");
}

std::string error_text(std::string_view json) {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  const bool has_text =
      document.is_object() && document.contains("error") && document["error"].is_string();
  return has_text ? document["error"].get<std::string>() : "no replica answered";
}

std::string without_own_regions_framed(std::string_view framed) {
  auto message = parse<::inference::SystemSharedMemoryStatusResponse>(framed);
  if (!message) {
    return std::string(framed);
  }
  auto& regions = *message->mutable_regions();
  for (auto region = regions.begin(); region != regions.end();) {
    region = region->first.starts_with(kRegionPrefix) ? regions.erase(region) : std::next(region);
  }
  return framed_message(message->SerializeAsString());
}

std::string truth_reply(bool truth) { return truth ? std::string("\x08\x01", 2) : std::string(); }

// 1 = SERVING, 2 = NOT_SERVING.
std::string health_reply(bool serving) { return std::string(serving ? "\x08\x01" : "\x08\x02", 2); }

}  // namespace septet::balance
