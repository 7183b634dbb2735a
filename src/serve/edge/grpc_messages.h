// What the gRPC server's answers are filled from; private to it. HTTP has the same as JSON.
#pragma once

#include <string>

#include "inference/edge/proto/grpc_service.pb.h"
#include "serve/edge/model_store.h"

namespace septet::serve {

void fill_metadata(const ModelStore& store, const ServedModel& model,
                   ::inference::ModelMetadataResponse& to);
void fill_statistics(const ModelStatistics& from, ::inference::ModelStatistics& to);

// A trace or log call's settings as the JSON of the HTTP interface; empty when there are none.
std::string settings_json(
    const google::protobuf::Map<std::string, ::inference::TraceSettingRequest::SettingValue>& from);
std::string settings_json(
    const google::protobuf::Map<std::string, ::inference::LogSettingsRequest::SettingValue>& from);
// And the JSON answer as the response.
void fill_settings(const std::string& json, ::inference::TraceSettingResponse& to);
void fill_settings(const std::string& json, ::inference::LogSettingsResponse& to);

}  // namespace septet::serve
