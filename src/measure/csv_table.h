// CsvTable: a comma-separated file as a header and rows of text cells.
//
// Knows RFC 4180's quotes (also with line ends inside) and tolerates what programs write: a comma
// at the end of lines, CRLF, empty lines. A value type.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace septet::measure {

struct CsvTable {
  struct Row {
    std::size_t line = 0;  // in the file, from 1
    std::vector<std::string> cells;
  };
  std::vector<std::string> header;
  std::vector<Row> rows;

  // Where the column of that name stands.
  std::optional<std::size_t> column(std::string_view name) const;
};

// Reads a whole file; an empty text gives an empty table.
CsvTable parse_csv(std::string_view text);

// The cell as it stands in a file: quoted if it holds a comma, a quote or a line end.
std::string csv_cell(std::string_view text);

}  // namespace septet::measure
