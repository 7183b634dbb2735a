// LevelRecorder: sorts what happens at one level into windows, and makes the level's result of
// them.
//
// Owned by the run of one level, used by its thread. A request belongs to the window in which its
// answer ends; one that ends later is counted in a later window.
//
//   boundary 0     boundary 1     boundary 2     boundary 3
//      |   window 0   |   window 1   |   window 2   |
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "measure/level_result.h"
#include "measure/measurement_rules.h"
#include "measure/profile_export.h"
#include "measure/stability.h"

namespace septet::measure {

// One good answer.
struct AnsweredRequest {
  Duration latency{};       // due to end
  Duration sent_latency{};  // sent to end
  Duration send{};          // writing the request
  Duration receive{};       // first to last byte of the answer
  bool ends_sequence = false;
  RequestTimes times{};
};

class LevelRecorder {
 public:
  LevelRecorder(const Level& level, const MeasurementRules& rules, int batch_size);

  // Opens the first window.
  void start(Instant now);
  // Answers of the open window; before start() they are not counted (warm-up).
  void answered(const AnsweredRequest& request);
  void failed(FailureKind kind);
  // A request left this long after it was due; more than a millisecond counts as delayed.
  void sent_late(Duration lag);

  // The server's GPUs at a moment of the open window.
  void read_gpus(const GpuReading& reading);

  // Good answers in the open window.
  std::uint64_t completed_in_window() const { return open_.result.completed; }
  // Closes the open window, opens the next and judges the level.
  LevelVerdict end_window(Instant now);
  // How many windows are closed, which is also the number of the last boundary.
  std::size_t windows_closed() const { return closed_.size(); }
  std::vector<WindowResult> windows() const;

  // The server's counters as they were at a boundary.
  void server_snapshot(std::size_t boundary, const ServerSnapshot& snapshot);

  // The level's figures from the windows that the rules merge.
  LevelResult result(LevelVerdict verdict) const;

 private:
  struct Window {
    WindowResult result;
    Histogram latency;
    Histogram sent_latency;
    Histogram send_lag;
    double send_ns = 0;
    double receive_ns = 0;
    std::uint64_t sequences = 0;
    std::optional<GpuFigures> gpus;
  };

  double judged_us(const Window& window) const;
  void merge_windows(std::size_t first, LevelResult& result) const;

  Level level_;
  MeasurementRules rules_;
  int batch_size_;
  bool started_ = false;
  Instant level_start_{};
  Instant window_start_{};
  Window open_;
  std::vector<Window> closed_;
  std::map<std::size_t, ServerSnapshot> snapshots_;
};

}  // namespace septet::measure
