#include "agent/isolation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace septet::agent {
namespace {

using ::testing::HasSubstr;

ClientMeasurement good(double p90_us = 1000) {
  return {.completed = 100, .failed = 0, .throughput = 10, .p90_us = p90_us};
}

// Three replicas; the first outgrows its memory and loses 40 requests.
IsolationOutcome outcome(Sharing sharing) {
  IsolationOutcome result;
  result.sharing = sharing;
  result.out_of_memory_kills = 2;
  for (int i = 0; i < 3; ++i) {
    ClientOutcome client{
        .replica = "replica-" + std::to_string(i), .before = good(), .during = good()};
    result.clients.push_back(client);
  }
  result.clients[0].at_the_fault = true;
  result.clients[0].during = {.completed = 60, .failed = 40, .throughput = 6, .p90_us = 5000};
  return result;
}

TEST(Isolation, NeighboursThatLostNothingAreSaidSo) {
  EXPECT_EQ(harmed_neighbours(outcome(Sharing::kMig)), 0u);
  EXPECT_EQ(isolation_verdict(outcome(Sharing::kMig)),
            "With partitions, one replica outgrew its memory and was ended 2 times; the other 2 "
            "lost no request, and the worst p90 among them became 1.00 times what it was.");
}

TEST(Isolation, NeighboursThatLostRequestsAreCounted) {
  IsolationOutcome bad = outcome(Sharing::kStreams);
  bad.clients[1].during.failed = 3;
  bad.clients[2].during = {};  // nothing came back at all

  EXPECT_EQ(harmed_neighbours(bad), 2u);
  EXPECT_THAT(isolation_verdict(bad), HasSubstr("With streams in one server"));
  EXPECT_THAT(isolation_verdict(bad), HasSubstr("2 of the other 2 clients lost 3 requests"));
}

TEST(Isolation, ASlowerNeighbourIsSeen) {
  IsolationOutcome slow = outcome(Sharing::kTimeSlicing);
  slow.clients[2].during = good(4500);

  EXPECT_THAT(isolation_verdict(slow), HasSubstr("4.50 times"));
}

TEST(Isolation, WithoutALimitNothingIsClaimed) {
  IsolationOutcome unlimited = outcome(Sharing::kMig);
  unlimited.out_of_memory_kills = 0;

  EXPECT_THAT(isolation_verdict(unlimited), HasSubstr("says nothing about isolation"));
}

TEST(Isolation, TheTableMarksTheReplicaAtFault) {
  EXPECT_THAT(isolation_text(outcome(Sharing::kMig)), HasSubstr("40  <- outgrows its memory"));
}

TEST(Isolation, TheFileHasALineForEachClientWithAllColumns) {
  const std::string header = isolation_csv_header();
  const std::string lines = isolation_csv_lines(outcome(Sharing::kMig));

  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), ','),
            3 * std::count(header.begin(), header.end(), ','));
  EXPECT_THAT(lines, HasSubstr("mig,replica-0,1,100,0,10,1000,60,40,6,5000,2,0,0\n"));
}

}  // namespace
}  // namespace septet::agent
