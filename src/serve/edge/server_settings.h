// The control calls that HTTP and gRPC share: shared memory, trace and log settings, metrics.
//
// Free functions on an InferenceServer; JSON in and out, as the HTTP interface has it.
#pragma once

#include <string>
#include <string_view>

#include "serve/edge/inference_server.h"
#include "serve/v2_path.h"

namespace septet::serve {

// The answer to a control call: a JSON text, empty where the protocol's answer is empty.
Outcome<std::string> system_memory_call(InferenceServer& server, const V2Path& path,
                                        std::string_view body);
Outcome<std::string> cuda_memory_call(const V2Path& path);
// An empty body reads the settings. kUnsupported: a level that is not offered, or any level when
// the server was started without a trace file.
Outcome<std::string> trace_call(InferenceServer& server, const V2Path& path, std::string_view body);
Outcome<std::string> logging_call(ServerLog& log, std::string_view body);

std::string metrics_text(const InferenceServer& server, std::size_t connections);

}  // namespace septet::serve
