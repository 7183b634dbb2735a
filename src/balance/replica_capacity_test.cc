#include "balance/replica_capacity.h"

#include <gtest/gtest.h>

namespace septet::balance {
namespace {

TEST(ParseCapacity, ReadsInstancesAndTheBatch) {
  EXPECT_EQ(parse_capacity(R"({"name":"m","max_batch_size":8,"dynamic_batching":{},)"
                           R"("instance_group":[{"count":2},{"name":"b"}]})"),
            (ReplicaCapacity{3, 8}));
}

TEST(ParseCapacity, WithoutDynamicBatchingEveryRequestRunsAlone) {
  EXPECT_EQ(parse_capacity(R"({"name":"m","max_batch_size":8})"), (ReplicaCapacity{1, 1}));
}

TEST(ParseCapacity, BoundsWhatItIsTold) {
  EXPECT_EQ(parse_capacity(R"({"name":"m","max_batch_size":-3,"dynamic_batching":{},)"
                           R"("instance_group":[{"count":99999999}]})"),
            (ReplicaCapacity{1024, 1}));
  EXPECT_FALSE(parse_capacity("[]"));
  EXPECT_FALSE(parse_capacity("{}"));
  EXPECT_FALSE(parse_capacity("{\"name\":"));
}

}  // namespace
}  // namespace septet::balance
