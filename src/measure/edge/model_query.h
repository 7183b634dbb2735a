// Asks a v2 server about itself and its models over HTTP; blocking, for use before and between
// loads.
//
// Every call opens its own connection and waits at most the timeout.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "measure/edge/server_access.h"
#include "measure/level_result.h"
#include "measure/model_description.h"
#include "measure/trace_request.h"
#include "os/endpoint.h"

namespace septet::measure {

struct HttpReply {
  unsigned status = 0;
  std::string body;
};

constexpr Duration kQueryTimeout = seconds(10);

// Head of a request to a v2 server. content_length nothing = no body.
std::string request_head(std::string_view method, std::string_view path,
                         const os::Endpoint& endpoint, const HeaderFields& headers,
                         std::optional<std::size_t> content_length = std::nullopt);

// One exchange, whatever its status. kPrecondition: nothing answers; kFailed: it broke off.
Result<HttpReply> http_exchange(const ServerAccess& server, std::string_view method,
                                std::string_view path, std::string_view body,
                                Duration timeout = kQueryTimeout);

// "/v2/models/M" or "/v2/models/M/versions/V".
std::string model_path(const std::string& model, const std::string& version);

// GET /v2.
Result<ServerDescription> query_server(const ServerAccess& access);
// GET metadata and config. kNotFound when the server does not know the model.
Result<ModelDescription> query_model(const ServerAccess& server, const std::string& model,
                                     const std::string& version);

// POST /v2/trace/setting. kFailed with the server's words when it refuses.
Result<Ok> set_trace(const ServerAccess& server, const TraceRequest& request);

// The body of GET /v2/models/M/stats: the counters of that version, or of all versions together
// when it is empty.
Result<ServerStatistics> parse_statistics(std::string_view body, const std::string& model,
                                          const std::string& version);

// The text of {"error": text}, or a short form of the body.
std::string error_text(std::string_view body);

}  // namespace septet::measure
