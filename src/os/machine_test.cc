#include "os/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace septet::os {
namespace {

TEST(ThisMachine, HasProcessorsAndMemory) {
  const Machine machine = this_machine();

  EXPECT_GE(machine.cpus, 1);
  EXPECT_LE(machine.cpus, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GT(machine.memory_bytes, 64 << 20);
  EXPECT_LE(machine.memory_bytes, sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

TEST(Machine, ReadsAsOneLine) {
  EXPECT_EQ((Machine{.cpus = 2, .memory_bytes = 24LL << 30, .cpu_name = "Some CPU"}).text(),
            "2 x Some CPU, 24 GiB");
}

}  // namespace
}  // namespace septet::os
