// LeaseTest: a simulated A100 laid out as seven slices, a lease daemon for it, and users who run
// septet there. Acting as several users needs root; without it the tests say that they are skipped.
//
// No control group of its leases is left when a test is over, however it ends: that is checked.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/edge/lease_client.h"
#include "os/process.h"
#include "simulated_machine.h"

namespace septet::acceptance {

constexpr Duration kPatience = seconds(90);  // generous: the machine may be busy

std::string read_file(const std::string& path);
// Whether it comes to hold within the patience.
bool eventually(const std::function<bool()>& holds);

class LeaseTest : public ::testing::Test {
 protected:
  explicit LeaseTest(std::string node = "A100-SXM4-40GB");

  void SetUp() override;
  void TearDown() override;

  std::string socket() const { return machine_.folder() + "/lend.sock"; }
  std::string ledger() const { return machine_.folder() + "/ledger"; }
  agent::LeaseClient client() const { return agent::LeaseClient(socket()); }

  void start_daemon(const std::string& config = "");
  void kill_daemon();

  // septet run of a user in the background, its output in a file.
  os::Process& start_run(unsigned uid, const std::string& words);
  std::string output_of_run(std::size_t index) const;
  // septet as a user, to its end.
  Outcome run_as(unsigned uid, const std::string& words) const;
  // A file of the machine that every user may write.
  std::string shared_file(const std::string& name) const;

  // What runs or waits, as the daemon tells it; only of one state when that is given.
  std::vector<lend::Json> leases(const std::string& state = "") const;
  bool has_active(std::size_t count) const;
  // Every partition that is held, as often as it is held.
  std::multiset<std::string> held() const;

  std::string node_;
  SimulatedMachine machine_;
  std::optional<os::Process> daemon_;
  std::vector<std::unique_ptr<os::Process>> runs_;

 private:
  void end_daemon();
  // Removes the control groups of this ledger's leases; returns their names.
  std::vector<std::string> remove_groups() const;
};

}  // namespace septet::acceptance
