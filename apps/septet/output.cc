#include "output.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace septet::app {
namespace {

// The value at "a.b" of a row; null where there is none.
const Json& value_at(const Json& row, const std::string& path) {
  static const Json kNothing;
  const Json* value = &row;
  for (const std::string_view key : split(path, '.')) {
    const auto found = value->find(std::string(key));
    if (!value->is_object() || found == value->end()) {
      return kNothing;
    }
    value = &*found;
  }
  return *value;
}

std::string cell_text(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_null()) {
    return "";
  }
  if (value.is_boolean()) {
    return value.get<bool>() ? "yes" : "no";
  }
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) {
      text += (text.empty() ? "" : " ") + cell_text(item);
    }
    return text;
  }
  return value.dump();
}

std::vector<std::vector<std::string>> cells_of(const Document& document) {
  std::vector<std::vector<std::string>> cells;
  const auto rows = document.fields.find(document.rows);
  if (rows == document.fields.end()) {
    return cells;
  }
  for (const Json& row : *rows) {
    std::vector<std::string> line;
    for (const Column& column : document.columns) {
      line.push_back(cell_text(value_at(row, column.key)));
    }
    cells.push_back(std::move(line));
  }
  return cells;
}

void append_line(std::string& text, const std::vector<std::string>& cells,
                 const std::vector<Column>& columns, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool right = columns[i].align == Align::kRight;
    line += right ? fmt::format("{:>{}}", cells[i], widths[i])
                  : fmt::format("{:<{}}", cells[i], widths[i]);
    line += "  ";
  }
  text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string render_table(const Document& document) {
  const auto cells = cells_of(document);
  std::string text;
  for (const std::string& line : document.heading) {
    text += line + "\n";
  }
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < document.columns.size(); ++i) {
    titles.push_back(document.columns[i].title);
    widths.push_back(titles.back().size());
    for (const auto& line : cells) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  if (cells.empty() && !document.columns.empty()) {
    text += "none\n";
  } else if (!cells.empty()) {
    append_line(text, titles, document.columns, widths);
    for (const auto& line : cells) {
      append_line(text, line, document.columns, widths);
    }
  }
  for (const std::string& line : document.notes) {
    text += line + "\n";
  }
  return text;
}

// RFC 4180: quoted where a comma, a quote or a line end would be misread.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return quoted + "\"";
}

std::string render_csv(const Document& document) {
  std::string text;
  const auto append = [&text](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += (i == 0 ? "" : ",") + csv_field(cells[i]);
    }
    text += "\n";
  };
  std::vector<std::string> keys;
  for (const Column& column : document.columns) {
    keys.push_back(column.key);
  }
  append(keys);
  for (const auto& line : cells_of(document)) {
    append(line);
  }
  return text;
}

void emit_yaml(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit_yaml(out, item);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
    for (const Json& item : value) {
      emit_yaml(out, item);
    }
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // numbers, true and false read the same in YAML
  }
}

Json with_schema(const Document& document) {
  Json whole = {{"schema", document.schema}};
  whole.update(document.fields);
  return whole;
}

std::string render_yaml(const Document& document) {
  YAML::Emitter out;
  emit_yaml(out, with_schema(document));
  return std::string(out.c_str()) + "\n";
}

}  // namespace

std::string render(const Document& document, OutputFormat format) {
  switch (format) {
    case OutputFormat::kTable:
      return render_table(document);
    case OutputFormat::kJson:
      return with_schema(document).dump(2) + "\n";
    case OutputFormat::kYaml:
      return render_yaml(document);
    case OutputFormat::kCsv:
      return render_csv(document);
  }
  return "";
}

void print(const Document& document, OutputFormat format) {
  fmt::print("{}", render(document, format));
}

int fail(const Error& error, OutputFormat format) {
  if (format == OutputFormat::kJson) {
    const Json object = {{"schema", "septet.error/1"},
                         {"error",
                          {{"kind", to_string(error.kind)},
                           {"exit_code", exit_code(error.kind)},
                           {"message", error.message},
                           {"hint", error.hint}}}};
    fmt::print(stderr, "{}\n", object.dump(2));
  } else {
    fmt::print(stderr, "septet: {}\n", error.text());
  }
  return exit_code(error.kind);
}

}  // namespace septet::app
