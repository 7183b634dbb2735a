// Any protobuf message as the JSON that Triton's HTTP interface shows: proto field names, enums as
// names, 64-bit numbers as numbers, bytes as text, absent messages left out, all scalars present.
#pragma once

#include <google/protobuf/message.h>

#include "inference/json_writer.h"

namespace septet::inference {

void write_proto_json(JsonWriter& json, const google::protobuf::Message& message);

}  // namespace septet::inference
