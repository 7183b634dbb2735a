// Small text helpers without locale: splitting, trimming, parsing whole numbers, nearest name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace septet {

// The pieces between separators; "a,,b" has three, "" has one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
// Without leading and trailing blanks, tabs and line ends.
std::string_view trim(std::string_view text);
// ASCII letters to lower case.
std::string to_lower(std::string_view text);
// Whether both are equal when ASCII case is ignored.
bool equal_ignoring_case(std::string_view a, std::string_view b);
// The whole text as a decimal number, or nothing (also on overflow, signs other than '-', blanks).
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<std::uint64_t> parse_uint(std::string_view text);
// The whole text as a finite number, or nothing.
std::optional<double> parse_double(std::string_view text);
// The candidate with the smallest edit distance, if it is near enough to be a likely typo.
std::optional<std::string> nearest_name(std::string_view wrong,
                                        const std::vector<std::string>& candidates);
// The bytes that base64 text stands for (RFC 4648, with or without padding); nothing when a
// character is none of its digits.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);
// "a, b and c".
std::string join_words(const std::vector<std::string>& words);

}  // namespace septet
