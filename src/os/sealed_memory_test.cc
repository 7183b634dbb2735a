#include "os/sealed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace septet::os {
namespace {

constexpr std::size_t kBytes = 1 << 20;

struct Pair {
  Pair() {
    std::array<int, 2> both{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both.data()), 0);
    here.reset(both[0]);
    there.reset(both[1]);
  }
  void send(std::string text, int descriptor) const {
    const iovec part{text.data(), text.size()};
    EXPECT_EQ(send_with_descriptor(here.get(), std::span(&part, 1), descriptor),
              static_cast<ssize_t>(text.size()));
  }
  UniqueFd here;
  UniqueFd there;
};

UniqueFd unsealed(int flags = MFD_ALLOW_SEALING) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | static_cast<unsigned>(flags)));
  EXPECT_EQ(::ftruncate(fd.get(), kBytes), 0);
  return fd;
}

TEST(SealedMemory, IsReadWhereItsDescriptorWasSent) {
  const auto memory = SealedMemory::create("test", kBytes).value();
  std::memcpy(memory->data() + kBytes - 5, "hello", 5);
  const Pair pair;
  pair.send("x", memory->fd());
  std::array<char, 16> text{};
  UniqueFd received;

  ASSERT_EQ(receive_with_descriptor(pair.there.get(), text.data(), text.size(), received), 1);
  const auto seen = SealedMemory::open(received, kBytes).value();

  EXPECT_EQ(std::memcmp(seen->data() + kBytes - 5, "hello", 5), 0);
  EXPECT_EQ(SealedMemory::identity_of(received.get()).value(),
            SealedMemory::identity_of(memory->fd()).value());
}

TEST(SealedMemory, CanNeitherBeResizedNorWrittenByTheOthers) {
  const auto memory = SealedMemory::create("test", kBytes).value();

  EXPECT_NE(::ftruncate(memory->fd(), 0), 0);
  EXPECT_NE(::ftruncate(memory->fd(), 2 * kBytes), 0);
  EXPECT_EQ(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd(), 0),
            MAP_FAILED);
}

TEST(SealedMemory, RefusesWhatCouldShrinkOrIsOfAnotherSize) {
  const auto memory = SealedMemory::create("test", kBytes).value();
  const UniqueFd own(::dup(memory->fd()));

  EXPECT_FALSE(SealedMemory::open(unsealed(), kBytes).ok());
  EXPECT_FALSE(SealedMemory::open(unsealed(0), kBytes).ok());
  EXPECT_FALSE(SealedMemory::open(own, kBytes + 4096).ok());
  EXPECT_FALSE(SealedMemory::open(own, 0).ok());
  EXPECT_FALSE(SealedMemory::open(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), 0).ok());
}

TEST(SealedMemory, OfSeveralDescriptorsTheFirstArrivesAndTheOthersAreClosed) {
  const Pair pair;
  const UniqueFd first = unsealed();
  const UniqueFd second = unsealed();
  alignas(cmsghdr) std::byte control[CMSG_SPACE(2 * sizeof(int))] = {};
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> both = {first.get(), second.get()};
  std::memcpy(CMSG_DATA(header), both.data(), sizeof both);
  ASSERT_EQ(::sendmsg(pair.here.get(), &message, 0), 1);
  UniqueFd received;

  ASSERT_EQ(receive_with_descriptor(pair.there.get(), &byte, 1, received), 1);
  const UniqueFd next(::dup(0));

  EXPECT_EQ(SealedMemory::identity_of(received.get()).value(),
            SealedMemory::identity_of(first.get()).value());
  EXPECT_EQ(next.get(), received.get() + 1);
}

TEST(SealedMemory, ReceivesAsRecvDoes) {
  const Pair pair;
  UniqueFd received;
  char byte = 0;

  EXPECT_EQ(receive_with_descriptor(pair.there.get(), &byte, 1, received), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(::send(pair.here.get(), "a", 1, 0), 1);
  EXPECT_EQ(receive_with_descriptor(pair.there.get(), &byte, 1, received), 1);
  EXPECT_FALSE(received.valid());
}

}  // namespace
}  // namespace septet::os
