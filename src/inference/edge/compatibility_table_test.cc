// docs/triton_compatibility.md against the messages: it names every configuration field and every
// call, each once, and says "refused" exactly where a field is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <fstream>
#include <map>

#include "base/text.h"
#include "inference/edge/config_support.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "inference/edge/proto/model_config.pb.h"

namespace septet::inference {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

struct Row {
  std::string subject;
  std::string state;
};

// The rows of the table under a heading.
std::vector<Row> rows_under(const std::string& heading) {
  std::ifstream file(SEPTET_SOURCE_DIR "/docs/triton_compatibility.md");
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) {
      inside = line == "## " + heading;
    }
    if (inside && line.starts_with("| ") && !line.starts_with("| field") &&
        !line.starts_with("| endpoint")) {
      const std::vector<std::string_view> cells = split(line, '|');
      rows.push_back({std::string(trim(cells.at(1))), std::string(trim(cells.at(2)))});
    }
  }
  return rows;
}

// What stands between backquotes.
std::vector<std::string> quoted(const std::string& text) {
  const std::vector<std::string_view> pieces = split(text, '`');
  std::vector<std::string> words;
  for (std::size_t i = 1; i < pieces.size(); i += 2) {
    words.emplace_back(pieces[i]);
  }
  return words;
}

struct Field {
  std::string path;
  bool refused = false;  // itself, or what it is in
};

void add_fields(const Descriptor& message, const std::string& prefix, bool refused,
                std::vector<Field>& to) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string path = prefix + field.name();
    const bool is_refused = refused || !why_refused(field.full_name()).empty();
    to.push_back({path, is_refused});
    const FieldDescriptor& value = field.is_map() ? *field.message_type()->map_value() : field;
    if (value.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      add_fields(*value.message_type(), path + ".", is_refused, to);
    }
  }
}

// Whether an entry of the table ("X" or "X.*") means the field.
bool covers(const std::string& entry, const std::string& path) {
  if (!entry.ends_with(".*")) {
    return entry == path;
  }
  const std::string whole = entry.substr(0, entry.size() - 2);
  return path == whole || path.starts_with(whole + ".");
}

TEST(CompatibilityTable, NamesEachConfigurationFieldOnceAndRefusesWhatTheServerRefuses) {
  std::vector<Field> fields;
  add_fields(*::inference::ModelConfig::descriptor(), "", false, fields);
  const std::vector<Row> rows = rows_under("config.pbtxt");
  ASSERT_GT(rows.size(), 20U);

  for (const Field& field : fields) {
    std::vector<std::string> states;
    for (const Row& row : rows) {
      for (const std::string& entry : quoted(row.subject)) {
        if (covers(entry, field.path)) {
          states.push_back(row.state);
        }
      }
    }
    ASSERT_EQ(states.size(), 1U) << field.path << " stands in " << states.size() << " rows";
    EXPECT_EQ(states[0].starts_with("refused"), field.refused) << field.path << ": " << states[0];
  }
}

TEST(CompatibilityTable, NamesNoFieldThatDoesNotExist) {
  std::vector<Field> fields;
  add_fields(*::inference::ModelConfig::descriptor(), "", false, fields);

  for (const Row& row : rows_under("config.pbtxt")) {
    for (const std::string& entry : quoted(row.subject)) {
      EXPECT_TRUE(std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
        return covers(entry, field.path);
      })) << entry;
    }
  }
}

TEST(CompatibilityTable, NamesEachCallOnce) {
  const auto& service = *::inference::ModelInferRequest::descriptor()->file()->service(0);
  std::map<std::string, int> named;
  for (const Row& row : rows_under("Endpoints")) {
    for (std::string_view piece : split(row.subject, ' ')) {
      while (piece.ends_with(',')) {
        piece.remove_suffix(1);
      }
      ++named[std::string(piece)];
    }
  }

  for (int i = 0; i < service.method_count(); ++i) {
    EXPECT_EQ(named[service.method(i)->name()], 1) << service.method(i)->name();
  }
}

}  // namespace
}  // namespace septet::inference
