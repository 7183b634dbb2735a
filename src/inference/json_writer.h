// JsonWriter: compact JSON appended to a string, without a tree in between.
//
//   JsonWriter json;
//   json.begin_object().key("name").value("simple").key("shape").array(shape).end_object();
//
// A value type for one thread. Commas are placed by the writer; balance is the caller's contract.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace septet::inference {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);  // escaped; bytes that are not UTF-8 become U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(unsigned number) { return value(static_cast<std::uint64_t>(number)); }
  // The shortest text that reads back as the same number; NaN and Infinity as Triton writes them.
  JsonWriter& value(double number);
  JsonWriter& value(float number);
  JsonWriter& array(std::span<const std::int64_t> numbers);
  // Text that is JSON already.
  JsonWriter& raw(std::string_view json);

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }
  void reserve(std::size_t bytes) { text_.reserve(bytes); }

 private:
  void separate();

  std::string text_;
  bool comma_ = false;  // a value stands before the place of the next one
};

// {"error":"text"}, the body of every error of the protocol.
std::string error_json(std::string_view message);

}  // namespace septet::inference
