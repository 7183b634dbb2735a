#include "inference/json_writer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace septet::inference {

namespace {

// Length of the well-formed UTF-8 sequence at the front; 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    low = first == 0xE0 ? 0xA0 : 0x80;
    high = first == 0xED ? 0x9F : 0xBF;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    low = first == 0xF0 ? 0x90 : 0x80;
    high = first == 0xF4 ? 0x8F : 0xBF;
  }
  if (length == 0 || text.size() < length || byte(1) < low || byte(1) > high) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) {
      return 0;
    }
  }
  return length;
}

void append_ascii(std::string& to, char c) {
  switch (c) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned>(c));
  } else {
    to += c;
  }
}

void append_escaped(std::string& to, std::string_view text) {
  while (!text.empty()) {
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      append_ascii(to, text.front());
      text.remove_prefix(1);
      continue;
    }
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      to += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      to += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
}

template <typename Float>
void append_float(std::string& to, Float number) {
  if (std::isnan(number)) {
    to += "NaN";
  } else if (std::isinf(number)) {
    to += number > 0 ? "Infinity" : "-Infinity";
  } else {
    fmt::format_to(std::back_inserter(to), FMT_COMPILE("{}"), number);
  }
}

}  // namespace

void JsonWriter::separate() {
  if (comma_) {
    text_ += ',';
  }
  comma_ = true;
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  text_ += '{';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  text_ += '}';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  separate();
  text_ += '[';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  text_ += ']';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  text_ += '"';
  append_escaped(text_, text);
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  text_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  separate();
  fmt::format_to(std::back_inserter(text_), FMT_COMPILE("{}"), number);
  return *this;
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
  separate();
  fmt::format_to(std::back_inserter(text_), FMT_COMPILE("{}"), number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  separate();
  append_float(text_, number);
  return *this;
}

JsonWriter& JsonWriter::value(float number) {
  separate();
  append_float(text_, number);
  return *this;
}

JsonWriter& JsonWriter::array(std::span<const std::int64_t> numbers) {
  begin_array();
  for (const std::int64_t number : numbers) {
    value(number);
  }
  return end_array();
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

std::string error_json(std::string_view message) {
  return JsonWriter().begin_object().key("error").value(message).end_object().take();
}

}  // namespace septet::inference
