// Id<Tag, Rep>: an identifier that cannot be confused with another kind of identifier.
//
//   using GpuUuid = Id<struct GpuUuidTag, std::string>;
#pragma once

#include <compare>
#include <functional>
#include <utility>

namespace septet {

template <typename Tag, typename Rep>
class Id {
 public:
  Id() = default;
  explicit Id(Rep value) : value_(std::move(value)) {}

  const Rep& value() const { return value_; }
  auto operator<=>(const Id&) const = default;
  bool operator==(const Id&) const = default;

 private:
  Rep value_{};
};

}  // namespace septet

template <typename Tag, typename Rep>
struct std::hash<septet::Id<Tag, Rep>> {
  std::size_t operator()(const septet::Id<Tag, Rep>& id) const {
    return std::hash<Rep>()(id.value());
  }
};
