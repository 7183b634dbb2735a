#include "balance/shared_request.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace septet::balance {

namespace {

// Walks over JSON without judging it: of text that is none it makes something or gives up.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  // Calls with the key of each member, at its value, which the call has to walk over. False when
  // that gives up, here is no object, or a key could be written in a plainer way: the replica may
  // take it for another than we do.
  template <typename Member>
  bool each_member(Member member) {
    return each('{', '}', [&] {
      std::string_view key;
      return take_string(key) && key.find('\\') == std::string_view::npos && take(':') &&
             member(key);
    });
  }
  template <typename Element>
  bool each_element(Element element) {
    return each('[', ']', element);
  }
  bool skip_value() {
    std::size_t depth = 0;
    do {
      skip_blanks();
      if (at_ == text_.size()) {
        return false;
      }
      const char c = text_[at_];
      std::string_view ignored;
      if (c == '"') {
        if (!take_string(ignored)) {
          return false;
        }
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
        return false;  // no value here
      }
      depth += c == '{' || c == '[' ? 1 : 0;
      depth -= c == '}' || c == ']' ? 1 : 0;
      at_ = depth > 0 || c == '}' || c == ']' ? at_ + 1 : end_of_word();
    } while (depth > 0);
    return true;
  }
  // A number without sign, fraction or exponent, or nothing taken.
  std::optional<std::uint64_t> take_size() {
    skip_blanks();
    const std::size_t end = end_of_word();
    const auto size = parse_uint(text_.substr(at_, end - at_));
    at_ = size ? end : at_;
    return size;
  }

 private:
  template <typename Item>
  bool each(char open, char close, Item item) {
    if (!take(open)) {
      return false;
    }
    if (take(close)) {
      return true;
    }
    while (item()) {
      if (take(close)) {
        return true;
      }
      if (!take(',')) {
        return false;
      }
    }
    return false;
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  std::size_t end_of_word() const {
    return std::min(text_.find_first_of(" \t\r\n,:\"{}[]", at_ + 1), text_.size());
  }
  bool take(char c) {
    skip_blanks();
    const bool here = at_ < text_.size() && text_[at_] == c;
    at_ += here ? 1 : 0;
    return here;
  }
  // As it is written, escapes and all.
  bool take_string(std::string_view& string) {
    if (!take('"')) {
      return false;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= text_.size()) {
      return false;
    }
    string = text_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Rewriter {
 public:
  Rewriter(std::string& out, std::string_view json, const TensorPlace& place)
      : out_(out), json_(json), walker_(json), place_(place) {}

  bool run() {
    const bool whole = walker_.each_member([this](std::string_view key) {
      return key == "inputs" ? walker_.each_element([this] { return input(); })
                             : walker_.skip_value();
    });
    out_.append(json_.substr(copied_));
    return whole && walker_.at_end() && taken_ == place_.tensor_bytes;
  }

 private:
  bool input() {
    bool has_size = false;
    return walker_.each_member([&](std::string_view key) {
      return key == "parameters" ? walker_.each_member([&](std::string_view name) {
        return parameter(name, has_size);
      })
                                 : walker_.skip_value();
    });
  }
  bool parameter(std::string_view name, bool& has_size) {
    if (name.starts_with("shared_memory_")) {
      return false;  // beside ours it could lead to another's bytes
    }
    if (name != "binary_data_size") {
      return walker_.skip_value();
    }
    const auto key_at = static_cast<std::size_t>(name.data() - json_.data()) - 1;  // its quote
    const auto size = walker_.take_size();
    if (!size || has_size || *size > place_.tensor_bytes - taken_) {
      return false;
    }
    has_size = true;
    out_.append(json_.substr(copied_, key_at - copied_));
    copied_ = walker_.at();
    out_.append("\"shared_memory_region\":\"").append(place_.region);
    out_.append("\",\"shared_memory_byte_size\":").append(std::to_string(*size));
    out_.append(",\"shared_memory_offset\":").append(std::to_string(place_.offset + taken_));
    taken_ += *size;
    return true;
  }

  std::string& out_;
  std::string_view json_;
  Walker walker_;
  const TensorPlace& place_;
  std::size_t copied_ = 0;  // of the JSON
  std::uint64_t taken_ = 0;
};

}  // namespace

bool append_shared_request(std::string& out, std::string_view json, const TensorPlace& place) {
  const std::size_t before = out.size();
  const bool rewritten = Rewriter(out, json, place).run();
  if (!rewritten) {
    out.resize(before);
  }
  return rewritten;
}

}  // namespace septet::balance
