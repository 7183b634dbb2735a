// Text by the columns that it takes on a terminal. Pure.
#pragma once

#include <string>
#include <string_view>

namespace septet::measure {

// Columns of UTF-8 text whose characters are all one column wide.
int terminal_columns(std::string_view text);
// With blanks behind it, or in front of it, up to that many columns.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);
// In lines of at most that many columns behind a mark; further lines are indented as far. A word
// that is too long stands alone. Ends with a line end.
std::string wrap_text(std::string_view mark, std::string_view text, int columns);

}  // namespace septet::measure
