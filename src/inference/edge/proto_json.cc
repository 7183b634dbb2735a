#include "inference/edge/proto_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <string>
#include <vector>

namespace septet::inference {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// One value: a field that is not repeated, or one element (index >= 0) of one that is.
void write_value(JsonWriter& json, const Message& message, const FieldDescriptor* field,
                 int index) {
  const Reflection* look = message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      json.value(std::int64_t{one ? look->GetInt32(message, field)
                                  : look->GetRepeatedInt32(message, field, index)});
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      json.value(std::int64_t{one ? look->GetInt64(message, field)
                                  : look->GetRepeatedInt64(message, field, index)});
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      json.value(std::uint64_t{one ? look->GetUInt32(message, field)
                                   : look->GetRepeatedUInt32(message, field, index)});
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      json.value(std::uint64_t{one ? look->GetUInt64(message, field)
                                   : look->GetRepeatedUInt64(message, field, index)});
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      json.value(one ? look->GetDouble(message, field)
                     : look->GetRepeatedDouble(message, field, index));
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      json.value(one ? look->GetFloat(message, field)
                     : look->GetRepeatedFloat(message, field, index));
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      json.value(one ? look->GetBool(message, field)
                     : look->GetRepeatedBool(message, field, index));
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      json.value(std::string_view(
          (one ? look->GetEnum(message, field) : look->GetRepeatedEnum(message, field, index))
              ->name()));
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      json.value(std::string_view(one ? look->GetString(message, field)
                                      : look->GetRepeatedString(message, field, index)));
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      write_proto_json(json, one ? look->GetMessage(message, field)
                                 : look->GetRepeatedMessage(message, field, index));
      return;
  }
}

std::string map_key(const Message& entry) {
  const FieldDescriptor* key = entry.GetDescriptor()->map_key();
  const Reflection* look = entry.GetReflection();
  switch (key->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return look->GetString(entry, key);
    case FieldDescriptor::CPPTYPE_UINT64:
      return fmt::to_string(look->GetUInt64(entry, key));
    default:
      return fmt::to_string(look->GetUInt32(entry, key));
  }
}

// Entries in the order of their keys: a map has no order of its own.
void write_map(JsonWriter& json, const Message& message, const FieldDescriptor* field) {
  const Reflection* look = message.GetReflection();
  std::vector<const Message*> entries;
  for (int i = 0; i < look->FieldSize(message, field); ++i) {
    entries.push_back(&look->GetRepeatedMessage(message, field, i));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Message* a, const Message* b) { return map_key(*a) < map_key(*b); });
  json.begin_object();
  for (const Message* entry : entries) {
    json.key(map_key(*entry));
    write_value(json, *entry, entry->GetDescriptor()->map_value(), -1);
  }
  json.end_object();
}

}  // namespace

void write_proto_json(JsonWriter& json, const Message& message) {
  const Reflection* look = message.GetReflection();
  json.begin_object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_repeated()) {
      json.key(field->name());
      if (field->is_map()) {
        write_map(json, message, field);
        continue;
      }
      json.begin_array();
      for (int index = 0; index < look->FieldSize(message, field); ++index) {
        write_value(json, message, field, index);
      }
      json.end_array();
    } else if (!field->has_presence() || look->HasField(message, field)) {
      json.key(field->name());
      write_value(json, message, field, -1);
    }
  }
  json.end_object();
}

}  // namespace septet::inference
