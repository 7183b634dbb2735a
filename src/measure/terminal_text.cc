#include "measure/terminal_text.h"

#include <algorithm>

#include "base/text.h"

namespace septet::measure {
namespace {

std::string blanks_for(std::string_view text, int columns) {
  return std::string(static_cast<std::size_t>(std::max(0, columns - terminal_columns(text))), ' ');
}

}  // namespace

int terminal_columns(std::string_view text) {
  // Continuation bytes take no column.
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string pad_right(std::string_view text, int columns) {
  return std::string(text) + blanks_for(text, columns);
}

std::string pad_left(std::string_view text, int columns) {
  return blanks_for(text, columns) + std::string(text);
}

std::string wrap_text(std::string_view mark, std::string_view text, int columns) {
  const std::string indent(static_cast<std::size_t>(terminal_columns(mark)), ' ');
  std::string out(mark);
  int column = terminal_columns(mark);
  bool line_empty = true;
  for (const std::string_view word : split(text, ' ')) {
    const int wide = terminal_columns(word);
    if (!line_empty && column + 1 + wide > columns) {
      out += '\n' + indent;
      column = terminal_columns(indent);
      line_empty = true;
    }
    if (!line_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += wide;
    line_empty = false;
  }
  return out + '\n';
}

}  // namespace septet::measure
