// FieldList: the fields of one HTTP/2 head or trailer block, in their order.
//
// A value whose memory is kept by clear().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace septet::balance {

class FieldList {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
  };

  void add(std::string_view name, std::string_view value) {
    text_.append(name).append(value);
    lengths_.push_back(
        {static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())});
  }
  void clear() {
    text_.clear();
    lengths_.clear();
  }
  bool empty() const { return lengths_.empty(); }
  std::size_t size() const { return lengths_.size(); }
  std::size_t bytes() const { return text_.size(); }
  // The first with that name (lower case); empty when there is none.
  std::string_view find(std::string_view name) const {
    std::string_view found;
    each([&](const Field& field) {
      if (found.data() == nullptr && field.name == name) {
        found = field.value;
      }
    });
    return found;
  }
  // Calls the function with every Field; the views live until the list changes.
  template <typename Function>
  void each(Function function) const {
    const std::string_view text = text_;
    std::size_t at = 0;
    for (const Lengths& lengths : lengths_) {
      function(Field{text.substr(at, lengths.name), text.substr(at + lengths.name, lengths.value)});
      at += lengths.name + lengths.value;
    }
  }

 private:
  struct Lengths {
    std::uint32_t name;
    std::uint32_t value;
  };
  std::string text_;
  std::vector<Lengths> lengths_;
};

}  // namespace septet::balance
