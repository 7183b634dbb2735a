#include "balance/known_head.h"

namespace septet::balance {

namespace {

// Thousands of connections keep theirs.
constexpr std::size_t kMaxBytes = 1024;

}  // namespace

void KnownHead::keep(std::string_view bytes, inference::HttpHead& head) {
  if (bytes.size() > kMaxBytes) {
    text_.clear();
    return;
  }
  text_.assign(bytes);
  const auto move = [this, &bytes](std::string_view& view) {
    if (!view.empty()) {
      view = {text_.data() + (view.data() - bytes.data()), view.size()};
    }
  };
  move(head.method);
  move(head.target);
  for (inference::HttpField& field : head.fields) {
    move(field.name);
    move(field.value);
  }
}

}  // namespace septet::balance
