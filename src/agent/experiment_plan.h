// ExperimentPlan: which configurations and levels of load an experiment measures, in which order.
//
//   technique x replicas x concurrency; what cannot run here is left out and named with the reason
//
// Pure: what the machine has is an argument. Values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "gpu/types.h"

namespace septet::agent {

// Ways to share the GPU that the experiment knows how to run.
enum class Sharing {
  kMig,          // one partition for each replica
  kTimeSlicing,  // all replicas on the undivided device
  kStreams,      // one server with so many model instances on the undivided device
};
// "mig", "time-slicing", "streams": the words of results.csv.
const char* to_string(Sharing sharing);

// What is being experimented on.
struct ExperimentDevice {
  bool simulated = false;
  bool limited = true;  // simulated slices are held to their share
  bool supports_mig = false;
  unsigned most_partitions = 0;    // of the smallest profile
  std::string smallest_profile{};  // "1g.5gb"
  // How many partitions of each profile fit.
  std::vector<std::pair<std::string, unsigned>> profiles{};
};

// Of a GPU as the driver describes it.
ExperimentDevice experiment_device(const gpu::GpuState& state, bool simulated);

struct ExperimentRequest {
  std::vector<std::string> techniques{};  // as typed; empty = all that can run
  std::vector<int> replicas{};            // empty: as many as there is room for
  std::vector<int> concurrency{};
  std::vector<std::string> profiles{};  // of partitions, compared; empty = the smallest one
  // Measure undivided techniques with the most replicas only, as the guide does.
  bool undivided_at_most_only = false;
};

struct PlannedConfiguration {
  Sharing sharing = Sharing::kMig;
  int replicas = 1;
  std::string profile{};  // of the partitions; empty = the smallest one

  // "mig-7", "mig-2g.10gb-3": folder of its perf.csv.
  std::string name() const;
  bool operator==(const PlannedConfiguration&) const = default;
};

struct ExperimentPlan {
  std::vector<PlannedConfiguration> configurations;
  std::vector<int> concurrency;
  std::vector<std::string> notes;  // one sentence for each thing left out, or simulated

  std::size_t cells() const { return configurations.size() * concurrency.size(); }
};

// kUsage: an unknown technique (names the nearest), replicas or concurrency below 1. kPrecondition:
// nothing that was asked for can run here.
Result<ExperimentPlan> plan_experiment(const ExperimentRequest& request,
                                       const ExperimentDevice& device);

// "1:7", "1:100:10" (begin:end:step), "1,2,4,7", "3": ascending, each once. kUsage names the text.
Result<std::vector<int>> parse_numbers(std::string_view text, std::string_view what);

// How long the rest will take, learned from what has been done.
class TimeLeft {
 public:
  TimeLeft(const ExperimentPlan& plan, Duration expected_set_up, Duration expected_cell);

  void set_up_done(Duration took);
  void cell_done(Duration took);
  // Cells that will not be measured after all.
  void cells_skipped(std::size_t count);

  Duration left() const;
  std::size_t cells_done() const { return cells_done_; }
  std::size_t cells() const { return cells_; }

 private:
  std::size_t set_ups_ = 0;
  std::size_t cells_ = 0;
  std::size_t set_ups_done_ = 0;
  std::size_t cells_done_ = 0;
  std::size_t cells_skipped_ = 0;
  Duration expected_set_up_;
  Duration expected_cell_;
  Duration set_up_time_{};
  Duration cell_time_{};
};

}  // namespace septet::agent
