// Document: what a verb says, printed as a table, JSON, YAML or CSV.
//
// A verb fills one Document and calls print(); it never formats by hand. JSON and YAML carry the
// schema's name and version ("septet.gpus/1"): a change that breaks readers takes a new version.
// Table and CSV show the rows: one array of the fields, one column per key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "verb.h"

namespace septet::app {

using Json = nlohmann::ordered_json;

enum class Align { kLeft, kRight };

struct Column {
  std::string key;    // of the row object; "engines.decoders" reaches inside
  std::string title;  // of the table; CSV prints the key
  Align align = Align::kLeft;
};

struct Document {
  std::string schema;                // "septet.gpus/1"
  Json fields = Json::object();      // everything, for JSON and YAML
  std::string rows;                  // which array of `fields` the table and CSV show
  std::vector<Column> columns;       // in order
  std::vector<std::string> heading;  // lines above the table
  std::vector<std::string> notes;    // lines below the table
};

// The text, ending with a line end. Table: columns two blanks apart, no rows gives "none".
std::string render(const Document& document, OutputFormat format);

// render() to stdout.
void print(const Document& document, OutputFormat format);

// Says the error on stderr ("septet: what; what to do", or an object with -o json) and returns the
// exit code.
int fail(const Error& error, OutputFormat format);

}  // namespace septet::app
