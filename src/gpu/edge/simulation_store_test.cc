#include "gpu/edge/simulation_store.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "gpu/edge/simulation_codec.h"
#include "gpu/simulated_instances.h"

namespace septet::gpu {
namespace {

using ::testing::HasSubstr;

class SimulationStoreTest : public ::testing::Test {
 protected:
  SimulationStoreTest() {
    std::string pattern = ::testing::TempDir() + "septet-store-XXXXXX";
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  ~SimulationStoreTest() override { std::filesystem::remove_all(root_); }

  SimulationStore created(std::string_view model) {
    SimulationStore store(root_ + "/node");
    CHECK(store.create(make_simulated_node(model).value()).ok());
    return SimulationStore(root_ + "/node");
  }

  std::string root_;
};

// Every field set to something that is not its default.
SimulatedNode full_node() {
  SimulatedNode node = make_simulated_node("A30x2").value();
  node.config.requires_root = true;
  node.config.answers_with_mig_off = false;
  node.config.driver_version = "550.1";
  ProfileOverride change;
  change.profile_id = 14;
  change.reported_id = 19;
  change.name = "1g.3gb";
  node.gpus[1].config.overrides = {change};
  node.gpus[1].config.placement = PlacementPolicy::kLast;
  CHECK(set_mig_mode(node.gpus[0], MigMode::kEnabled).code == NvmlCode::kSuccess);
  GpuInstance instance;
  ComputeInstance compute;
  CHECK(create_gpu_instance(node.gpus[0], ProfileId(5), {}, instance) == NvmlCode::kSuccess);
  CHECK(create_compute_instance(node.gpus[0], instance.id, ProfileId(0), {}, compute) ==
        NvmlCode::kSuccess);
  SimulatedClient client;
  client.pid = 4242;
  client.name = "worker \"quoted\"";
  client.gpu_instance = instance.id.value();
  node.gpus[0].clients = {client};
  FaultRule rule;
  rule.call = "write";
  rule.code = NvmlCode::kInUse;
  rule.activation = NvmlCode::kResetRequired;
  rule.delay = milliseconds(5);
  rule.kill = KillMoment::kAfter;
  rule.xid = 79;
  rule.foreign.create_profile = 5;
  rule.probability = 0.25;
  node.faults = {rule};
  node.events = {{1, 94, 3}};
  node.calls = 12;
  node.generation = 99;
  return node;
}

TEST(SimulationCodec, ReadsBackWhatItWrote) {
  const SimulatedNode node = full_node();

  const auto back = decode(encode(node), "here");

  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(*back, node);
  EXPECT_EQ(generation_of(encode(node)), 99U);
}

TEST(SimulationCodec, RefusesForeignNewerAndTruncatedFiles) {
  const std::string text = encode(full_node());
  std::string newer = text;
  newer.replace(newer.find(" 1 "), 3, " 2 ");

  EXPECT_THAT(decode("hello", "here").error().message, HasSubstr("not a file of septet"));
  EXPECT_THAT(decode(newer, "here").error().message, HasSubstr("another version"));
  for (std::size_t size = 0; size < text.size() - 1; size += 13) {
    EXPECT_FALSE(decode(text.substr(0, size), "here").ok()) << size;
  }
}

TEST(SimulationCodec, RefusesAnImpossibleLayout) {
  SimulatedNode node = full_node();
  node.gpus[0].instances[0].placement = {1, 2};

  EXPECT_THAT(decode(encode(node), "here").error().message, HasSubstr("not legal"));
}

TEST_F(SimulationStoreTest, KeepsTheNodeForOtherStores) {
  const SimulationStore one = created("A100-SXM4-40GB");
  const SimulationStore two(one.directory());

  ASSERT_TRUE(one.update([](SimulatedNode& node) { node.gpus[0].mig_current = true; }).ok());

  EXPECT_TRUE(two.read()->gpus[0].mig_current);
  ASSERT_TRUE(two.update([](SimulatedNode& node) { node.gpus[0].mig_current = false; }).ok());
  EXPECT_FALSE(one.read()->gpus[0].mig_current);
}

TEST_F(SimulationStoreTest, CreatesOnceAndDestroys) {
  const SimulationStore store = created("H200");

  const auto again = store.create(make_simulated_node("H200").value());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::kPrecondition);
  EXPECT_TRUE(store.destroy().ok());
  EXPECT_FALSE(std::filesystem::exists(store.directory()));
  EXPECT_EQ(store.read().error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(store.destroy().error().kind, ErrorKind::kNotFound);
}

TEST_F(SimulationStoreTest, LosesNoChangeOfProcessesAndThreadsSideBySide) {
  const SimulationStore store = created("H200");
  const auto count_up = [&store] {
    for (int i = 0; i < 50; ++i) {
      CHECK(store.update([](SimulatedNode& node) { ++node.calls; }).ok());
    }
  };
  const pid_t child = ::fork();
  if (child == 0) {
    count_up();
    ::_exit(0);
  }

  std::thread other(count_up);
  count_up();
  other.join();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(store.read()->calls, 150U);
}

TEST_F(SimulationStoreTest, DropsClientsThatHaveDied) {
  const SimulationStore store = created("H200");
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_TRUE(store
                  .update([&](SimulatedNode& node) {
                    SimulatedClient client;
                    client.pid = child;
                    client.start_time = process_start_time(child);
                    client.name = "worker";
                    CHECK(attach_client(node.gpus[0], client) == NvmlCode::kSuccess);
                  })
                  .ok());
  EXPECT_EQ(store.read()->gpus[0].clients.size(), 1U);

  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_TRUE(store.read()->gpus[0].clients.empty());
}

TEST_F(SimulationStoreTest, KeepsTheRenderedTreesUpToDate) {
  const SimulationStore store = created("H200");
  const std::string file =
      store.directory() + "/sysroot/proc/driver/nvidia/capabilities/gpu0/mig/gi0/access";

  ASSERT_TRUE(store.render().ok());
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_TRUE(store
                  .update([](SimulatedNode& node) {
                    GpuInstance created;
                    static_cast<void>(set_mig_mode(node.gpus[0], MigMode::kEnabled));
                    CHECK(create_gpu_instance(node.gpus[0], ProfileId(0), {}, created) ==
                          NvmlCode::kSuccess);
                  })
                  .ok());

  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(store.destroy().ok());
  EXPECT_FALSE(std::filesystem::exists(store.directory()));
}

TEST_F(SimulationStoreTest, SaysWhatIsWrongWithADamagedFile) {
  const SimulationStore store = created("H200");
  std::ofstream(store.directory() + "/state") << "garbage\n";

  const auto node = SimulationStore(store.directory()).read();

  ASSERT_FALSE(node.ok());
  EXPECT_THAT(node.error().message, HasSubstr(store.directory() + "/state"));
  EXPECT_THAT(node.error().hint, HasSubstr("sim destroy"));
}

}  // namespace
}  // namespace septet::gpu
