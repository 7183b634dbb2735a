#include "serve/edge/memory_fault.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace septet::serve {
namespace {

constexpr std::size_t kChunkMib = 16;
constexpr long kLookNs = 100'000'000;  // how often the thread looks whether it is to leave

sigset_t trigger() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return set;
}

}  // namespace

MemoryFault::MemoryFault(int mib_per_second) : mib_per_second_(mib_per_second) {
  const sigset_t set = trigger();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { run(); });
}

MemoryFault::~MemoryFault() {
  leaving_ = true;
  thread_.join();
}

void MemoryFault::run() {
  const sigset_t set = trigger();
  const timespec look{0, kLookNs};
  while (sigtimedwait(&set, nullptr, &look) != SIGUSR2) {
    if (leaving_) {
      return;
    }
  }
  fmt::print(stderr, "septet: SIGUSR2: allocating {} MiB per second without end\n",
             mib_per_second_);
  const long pause_ns = static_cast<long>(kChunkMib) * 1'000'000'000L / mib_per_second_;
  const timespec pause{pause_ns / 1'000'000'000L, pause_ns % 1'000'000'000L};
  while (!leaving_) {
    allocate_chunk();
    nanosleep(&pause, nullptr);
  }
}

// Mapped and written to, so that it really takes memory; never given back.
void MemoryFault::allocate_chunk() {
  constexpr std::size_t kBytes = kChunkMib << 20;
  void* chunk = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (chunk != MAP_FAILED) {
    std::memset(chunk, 1, kBytes);
  }
}

}  // namespace septet::serve
