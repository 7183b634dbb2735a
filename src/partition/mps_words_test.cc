#include "partition/mps_words.h"

#include <gtest/gtest.h>

namespace septet::partition {
namespace {

TEST(MpsWords, NonsenseIsRefusedBeforeTheDaemonCanTakeItForAHundred) {
  EXPECT_FALSE(check({.thread_percent = 0}).ok());
  EXPECT_FALSE(check({.thread_percent = 101}).ok());
  EXPECT_FALSE(check({.memory_mib = 0}).ok());
  EXPECT_FALSE(check({.priority = 2}).ok());
  EXPECT_TRUE(check({.thread_percent = 14, .memory_mib = 5120, .priority = 1}).ok());
}

TEST(MpsWords, CommandsCarryAUnit) {
  EXPECT_EQ(set_commands({.thread_percent = 14, .memory_mib = 5120}),
            (std::vector<std::string>{"set_default_active_thread_percentage 14",
                                      "set_default_client_priority 0",
                                      "set_default_device_pinned_mem_limit 0 5120M"}));
}

TEST(MpsWords, AnswersAreJudgedByWhatTheySay) {
  EXPECT_EQ(judge_answer("x", "Unknown command \"x\"\n", "").error().kind, ErrorKind::kFailed);
  EXPECT_EQ(judge_answer("set_default_client_priority 5",
                         "Invalid priority value - must be 0 or 1!\n", "")
                .error()
                .kind,
            ErrorKind::kFailed);
  EXPECT_EQ(judge_answer("get_client_list 1", "Server 1 not found\n", "").error().kind,
            ErrorKind::kNotFound);
  EXPECT_EQ(
      judge_answer("get_server_list", "", "Cannot find MPS control daemon process\n").error().kind,
      ErrorKind::kPrecondition);
  EXPECT_EQ(*judge_answer("get_server_list", "4242\n", ""), "4242\n");
}

TEST(MpsWords, ReadsBackWhatVersion535Prints) {
  EXPECT_EQ(parse_mps_percent("14.3\n"), 14.3);
  EXPECT_TRUE(same_percent(14.0, 14));
  EXPECT_FALSE(same_percent(100.0, 14));
  EXPECT_EQ(parse_mps_memory_mib("5G\n"), 5120);
  EXPECT_EQ(parse_mps_memory_mib("512M"), 512);
  EXPECT_FALSE(parse_mps_memory_mib("5"));
  EXPECT_FALSE(parse_mps_memory_mib(""));
}

TEST(MpsWords, PidsAreTheLinesThatAreNumbers) {
  EXPECT_EQ(parse_pids("12\n  13 \nnone\n-4\n\n"), (std::vector<int>{12, 13}));
}

TEST(MpsWords, TheLogNamesTheDaemonAndAServerThatDied) {
  const char* log =
      "[2026-01-31 10:00:00.123 Control  4242] Starting control daemon using socket /x\n"
      "[2026-01-31 10:00:01.000 Control  4242] Starting new server 4250 for user 0\n"
      "[2026-01-31 10:00:01.200 Control  4242] Server 4250 exited with status 1\n";

  EXPECT_EQ(daemon_pid_in_log(log), 4242);
  EXPECT_EQ(server_failure_in_log(log), "status 1");
  EXPECT_FALSE(server_failure_in_log("[..] Starting new server 4250 for user 0\n"));
}

}  // namespace
}  // namespace septet::partition
