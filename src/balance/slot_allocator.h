// SlotAllocator: hands out the slots of a region of memory; it only counts, the bytes are
// elsewhere.
//
//   the region:  [   free, 4 units    ][ slot, 2 units ][slot][free]      sizes are powers of two
//
// Slots are split in halves and merged with their other half again (buddies), so a region serves
// bodies of every size and does not stay in pieces. A slot may have several users: it is free when
// the last of them has given it back. Owned by one thread; allocates nothing after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace septet::balance {

class SlotAllocator {
 public:
  struct Slot {
    std::size_t offset = 0;  // in the region; a multiple of `bytes`
    std::size_t bytes = 0;
  };

  // Both are powers of two, region_bytes a multiple of unit_bytes: the smallest slot (CHECK).
  SlotAllocator(std::size_t region_bytes, std::size_t unit_bytes);

  // A slot of at least so many bytes for one user; nothing when there is none left.
  std::optional<Slot> take(std::size_t bytes);
  // One more user of the slot at that offset.
  void share(std::size_t offset);
  // One user less.
  void give_back(std::size_t offset);

  // Whether take() could ever succeed.
  bool fits(std::size_t bytes) const { return bytes <= region_bytes_; }
  std::size_t region_bytes() const { return region_bytes_; }
  std::size_t used_bytes() const { return used_bytes_; }
  std::size_t used_slots() const { return used_slots_; }

 private:
  using Unit = std::uint32_t;
  static constexpr Unit kNone = ~Unit{0};
  enum class Kind : std::uint8_t {
    kInside,
    kFree,
    kUsed
  };  // of the slot that begins there, if any
  struct Place {
    Kind kind = Kind::kInside;
    std::uint8_t order = 0;  // the slot has 2^order units
    std::uint32_t users = 0;
    Unit previous = kNone;  // of the free ones of that order
    Unit next = kNone;
  };

  Place& used_place(std::size_t offset);
  void push(Unit unit, std::uint8_t order);
  void unlink(Unit unit);

  std::size_t region_bytes_;
  std::size_t unit_bytes_;
  std::uint8_t most_order_;
  std::size_t used_bytes_ = 0;
  std::size_t used_slots_ = 0;
  std::vector<Place> places_;    // by unit
  std::array<Unit, 33> free_{};  // by order: the first free one, the last freed
};

}  // namespace septet::balance
