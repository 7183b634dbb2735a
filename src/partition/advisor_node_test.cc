#include "partition/advisor_node.h"

#include <gtest/gtest.h>

namespace septet::partition {
namespace {

TEST(AdvisorNode, KnowsEveryModel) {
  for (const gpu::GpuModel& model : gpu::gpu_models()) {
    const Node node = node_for(model);

    EXPECT_GE(node.compute_capability, 70U) << model.key;
    EXPECT_GT(node.memory_mib, 0) << model.key;
    for (const gpu::GpuInstanceProfile& profile : model.profiles) {
      EXPECT_GE(node.multiprocessors, profile.engines.multiprocessors) << model.key;
    }
  }
}

TEST(AdvisorNode, MigModeCostsTheA100Multiprocessors) {
  const auto model = gpu::find_gpu_model("A100-SXM4-40GB");
  ASSERT_TRUE(model.ok());

  EXPECT_EQ(node_for(**model).multiprocessors, 108U);
  EXPECT_EQ(node_for(**model).chunk_multiprocessors, 4U);
}

}  // namespace
}  // namespace septet::partition
