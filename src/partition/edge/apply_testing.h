// The fixture of the tests of applying: one simulated GPU in process, a state folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gpu/simulated_driver.h"
#include "os/durable_file.h"
#include "os/owned_folder.h"
#include "partition/edge/apply.h"

namespace septet::partition {

inline Want want_of(const std::string& text) {
  const auto want = parse_want(std::vector<std::string>{text});
  CHECK(want.ok());
  return *want;
}

class Apply : public testing::Test {
 protected:
  void SetUp() override {
    // In memory where there is such a place: the sweeps write thousands of journals.
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    auto folder = os::OwnedFolder::create("apply", in_memory ? "/dev/shm" : "");
    ASSERT_TRUE(folder.ok());
    folder_ = *std::move(folder);
    use_model("A100-SXM4-40GB");
  }

  void use_model(const std::string& model) {
    node_ = *gpu::make_simulated_node(model);
    driver_.emplace(node_);
  }
  ApplyOptions options() const { return {.state = StateFolder(folder_->path())}; }
  Result<ApplyReport> apply(const std::string& want) {
    return apply_want(*driver_, 0, want_of(want), options());
  }
  std::string layout() { return to_string(layout_of(gpu::state_of(node_.gpus[0]))); }
  bool has_journal() {
    return os::read_whole_file(options().state.journal_path(gpu::state_of(node_.gpus[0]).uuid))
        .ok();
  }
  template <typename Fill>
  void add_fault(const Fill& fill) {
    gpu::FaultRule rule;
    fill(rule);
    node_.faults.push_back(std::move(rule));
  }
  void hold(unsigned start) {
    for (const gpu::GpuInstance& instance : node_.gpus[0].instances) {
      if (instance.placement.start == start) {
        gpu::SimulatedClient client;
        client.pid = 4242;
        client.name = "python";
        client.gpu_instance = instance.id.value();
        client.compute_instance = instance.compute_instances.front().id.value();
        ASSERT_EQ(gpu::attach_client(node_.gpus[0], client), gpu::NvmlCode::kSuccess);
      }
    }
  }

  std::unique_ptr<os::OwnedFolder> folder_;
  gpu::SimulatedNode node_;
  std::optional<gpu::SimulatedDriver> driver_;
};

}  // namespace septet::partition
