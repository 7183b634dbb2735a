#include "balance/slot_allocator.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace septet::balance {

SlotAllocator::SlotAllocator(std::size_t region_bytes, std::size_t unit_bytes)
    : region_bytes_(region_bytes), unit_bytes_(unit_bytes), most_order_(0) {
  CHECK(std::has_single_bit(region_bytes) && std::has_single_bit(unit_bytes));
  CHECK(unit_bytes <= region_bytes && region_bytes / unit_bytes <= kNone);
  places_.resize(region_bytes / unit_bytes);
  most_order_ = static_cast<std::uint8_t>(std::countr_zero(places_.size()));
  free_.fill(kNone);
  push(0, most_order_);
}

void SlotAllocator::push(Unit unit, std::uint8_t order) {
  Unit& first = free_[order];
  places_[unit] = {Kind::kFree, order, 0, kNone, first};
  if (first != kNone) {
    places_[first].previous = unit;
  }
  first = unit;
}

void SlotAllocator::unlink(Unit unit) {
  Place& place = places_[unit];
  (place.previous == kNone ? free_[place.order] : places_[place.previous].next) = place.next;
  if (place.next != kNone) {
    places_[place.next].previous = place.previous;
  }
  place.kind = Kind::kInside;
}

std::optional<SlotAllocator::Slot> SlotAllocator::take(std::size_t bytes) {
  if (!fits(bytes)) {
    return std::nullopt;
  }
  const std::size_t size = std::bit_ceil(std::max(bytes, unit_bytes_));
  const auto order = static_cast<std::uint8_t>(std::countr_zero(size / unit_bytes_));
  std::uint8_t found = order;
  while (found <= most_order_ && free_[found] == kNone) {
    ++found;
  }
  if (found > most_order_) {
    return std::nullopt;
  }
  const Unit unit = free_[found];
  unlink(unit);
  while (found > order) {
    --found;
    push(unit + (Unit{1} << found), found);  // the upper half stays free
  }
  places_[unit] = {Kind::kUsed, order, 1, kNone, kNone};
  used_bytes_ += size;
  ++used_slots_;
  return Slot{unit * unit_bytes_, size};
}

SlotAllocator::Place& SlotAllocator::used_place(std::size_t offset) {
  CHECK(offset % unit_bytes_ == 0 && offset < region_bytes_);
  Place& place = places_[offset / unit_bytes_];
  CHECK(place.kind == Kind::kUsed);
  return place;
}

void SlotAllocator::share(std::size_t offset) { ++used_place(offset).users; }

void SlotAllocator::give_back(std::size_t offset) {
  Place& place = used_place(offset);
  if (--place.users > 0) {
    return;
  }
  std::uint8_t order = place.order;
  used_bytes_ -= unit_bytes_ << order;
  --used_slots_;
  place.kind = Kind::kInside;
  auto unit = static_cast<Unit>(offset / unit_bytes_);
  while (order < most_order_) {
    const Unit buddy = unit ^ (Unit{1} << order);
    if (places_[buddy].kind != Kind::kFree || places_[buddy].order != order) {
      break;
    }
    unlink(buddy);
    unit = std::min(unit, buddy);
    ++order;
  }
  push(unit, order);
}

}  // namespace septet::balance
