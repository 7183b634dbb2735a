#include "serve/edge/slot_regions.h"

namespace septet::serve {

Result<std::shared_ptr<const os::SealedMemory>> SlotRegions::open(const os::UniqueFd& fd,
                                                                  std::size_t bytes) {
  const auto identity = os::SealedMemory::identity_of(fd.get());
  if (!identity.ok()) {
    return identity.error();
  }
  std::erase_if(known_, [](const Known& known) { return known.memory.expired(); });
  for (const Known& known : known_) {
    const std::shared_ptr<const os::SealedMemory> memory = known.memory.lock();
    // While it is mapped its number names no other memory.
    if (memory && known.identity == *identity && memory->size() == bytes) {
      return memory;
    }
  }
  auto memory = os::SealedMemory::open(fd, bytes);
  if (memory.ok()) {
    known_.push_back({*identity, *memory});
  }
  return memory;
}

}  // namespace septet::serve
