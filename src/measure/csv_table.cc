#include "measure/csv_table.h"

#include <algorithm>

namespace septet::measure {
namespace {

// Takes one character after the other and collects cells.
class CsvScanner {
 public:
  void take(char c) {
    if (c == '\n') {
      ++line_;
    }
    if (c == '"' && (quoted_ || after_quote_ || cell_.empty())) {
      take_quote();
    } else if (quoted_) {
      cell_ += c;
    } else if (c == ',') {
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      cell_ += c;
    }
  }

  CsvTable finish() {
    if (!cell_.empty() || !cells_.empty()) {
      end_row();
    }
    return std::move(table_);
  }

 private:
  // A quote opens or closes; one that follows a closing quote at once stands for itself and goes
  // on.
  void take_quote() {
    if (after_quote_) {
      cell_ += '"';
    }
    after_quote_ = quoted_;
    quoted_ = !quoted_;
  }

  void end_cell() {
    cells_.push_back(std::move(cell_));
    cell_.clear();
    after_quote_ = false;
  }

  void end_row() {
    end_cell();
    if (cells_.size() == 1 && cells_[0].empty()) {
      cells_.clear();
    } else if (table_.header.empty()) {
      table_.header = std::move(cells_);
      if (table_.header.back().empty()) {
        table_.header.pop_back();
      }
    } else {
      table_.rows.push_back({row_line_, std::move(cells_)});
    }
    cells_.clear();
    row_line_ = line_;
  }

  CsvTable table_;
  std::vector<std::string> cells_;
  std::string cell_;
  bool quoted_ = false;
  bool after_quote_ = false;
  std::size_t line_ = 1;
  std::size_t row_line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - header.begin());
}

CsvTable parse_csv(std::string_view text) {
  CsvScanner scanner;
  for (const char c : text) {
    scanner.take(c);
  }
  return scanner.finish();
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace septet::measure
