#include "os/named_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace septet::os {
namespace {

constexpr std::size_t kBytes = 1 << 16;

// Of this test program's run alone.
std::string prefix() { return "septet-test-" + std::to_string(::getpid()); }

std::string path_of(const std::string& key) { return "/dev/shm" + key; }

TEST(NamedMemory, IsReadByWhoeverKnowsItsName) {
  const auto memory = NamedMemory::create(prefix(), kBytes).value();
  std::memcpy(memory->data() + kBytes - 5, "hello", 5);

  const UniqueFd fd(::shm_open(memory->key().c_str(), O_RDONLY, 0));
  ASSERT_TRUE(fd.valid());
  char text[5] = {};
  ASSERT_EQ(::pread(fd.get(), text, 5, kBytes - 5), 5);

  EXPECT_EQ(std::string(text, 5), "hello");
  EXPECT_TRUE(memory->key().starts_with("/" + prefix() + "-"));
}

TEST(NamedMemory, GoesWithItsCreatorAlsoForThoseWhoHaveItOpen) {
  auto memory = NamedMemory::create(prefix(), kBytes).value();
  const std::string key = memory->key();
  const UniqueFd fd(::shm_open(key.c_str(), O_RDONLY, 0));
  struct stat before {};
  ASSERT_EQ(::fstat(fd.get(), &before), 0);

  memory.reset();

  struct stat after {};
  ASSERT_EQ(::fstat(fd.get(), &after), 0);
  EXPECT_FALSE(std::filesystem::exists(path_of(key)));
  EXPECT_GT(before.st_blocks, 0);
  EXPECT_EQ(after.st_blocks, 0);
  EXPECT_EQ(after.st_size, before.st_size);  // a reader gets zeros, not SIGBUS
}

TEST(NamedMemory, WhatAKilledCreatorLeftIsRemovedByTheNextOne) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const std::string ours = prefix();
  const pid_t child = ::fork();
  if (child == 0) {
    auto left = NamedMemory::create(ours, kBytes);
    const std::string key = left.ok() ? (*left)->key() : "";
    static_cast<void>(!::write(ends[1], key.data(), key.size()));
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  char text[256] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(std::filesystem::exists(path_of(text)));

  const auto first = NamedMemory::create(ours, kBytes).value();
  const auto second = NamedMemory::create(ours, kBytes).value();

  EXPECT_FALSE(std::filesystem::exists(path_of(text)));
  EXPECT_TRUE(std::filesystem::exists(path_of(first->key())));  // its creator lives
}

TEST(NamedMemory, TakesNoMoreThanAQuarterOfWhatIsLeft) {
  const auto memory = NamedMemory::create(prefix(), std::size_t{1} << 50U);

  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().kind, ErrorKind::kNoCapacity);
}

}  // namespace
}  // namespace septet::os
