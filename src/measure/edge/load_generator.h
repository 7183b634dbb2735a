// LoadGenerator: sends inference requests at a given load and measures what comes back.
//
// Owned and used by one thread; run_level() blocks in it. One event loop carries all connections,
// so a generator costs one core at most. It reads the model's metadata once, when it is opened.
//
//   auto generator = LoadGenerator::open(target, input, rules, {});
//   run_sweep(**generator, LevelSweep::linear(LoadMode::kConcurrency, 1, 16, 1), stop,
//             [&](const LevelResult& row) { ... });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "measure/edge/metrics_poller.h"
#include "measure/edge/request_feed.h"
#include "measure/infer_input.h"
#include "measure/level_result.h"
#include "measure/level_sweep.h"
#include "measure/measurement_rules.h"
#include "measure/message_compression.h"
#include "measure/model_description.h"
#include "measure/profile_export.h"
#include "measure/trace_request.h"
#include "os/endpoint.h"

namespace septet::measure {

enum class Protocol {
  kHttp,
  kGrpc,        // a unary call for each request
  kGrpcStream,  // a bidirectional stream for each connection
};

// What is measured.
struct Target {
  Protocol protocol = Protocol::kHttp;
  std::vector<os::Endpoint> endpoints;  // TCP or Unix; connections are dealt to them in turn
  std::string model;
  std::string version;                                       // empty = the server's choice
  std::vector<std::pair<std::string, std::string>> headers;  // added to every request
  std::shared_ptr<const TlsContext> tls;                     // null = plain
  std::map<std::string, std::string> host_names;  // by endpoint, where an address replaced a name
};

struct GeneratorOptions {
  RequestDistribution distribution = RequestDistribution::kConstant;
  std::uint64_t seed = 1;              // of a Poisson schedule and of sequence lengths
  std::vector<Duration> intervals;     // LoadMode::kIntervals: gaps, used in turn and repeated
  std::size_t max_connections = 1024;  // open loop: most requests in flight
  std::size_t live_sequences = 4;      // open loop with a sequence model
  SequenceOptions sequence;
  std::vector<std::string> input_files;  // JSON files or directories; empty = data is made up
  MessageCompression grpc_compression = MessageCompression::kNone;  // of requests
  bool keep_times = false;                             // of every request, for take_times()
  std::vector<ModelPart> called_models;                // that the model calls by itself (BLS)
  TraceRequest trace;                                  // told to every server before the load
  bool shared_memory = false;                          // tensors through POSIX shared memory
  std::uint64_t output_shared_memory_bytes = 102'400;  // of an output without a fixed size
  std::optional<MetricsSource> metrics;                // of the server's GPUs; nothing = not read
};

// What the server says about itself and the model.
struct TargetDescription {
  ServerDescription server;
  ModelDescription model;
  std::size_t request_bytes = 0;             // body of one inference request
  std::vector<std::string> missing_metrics;  // that were to be collected, and the server has not

  bool has_statistics() const { return server.has_extension("statistics"); }
};

class LoadGenerator {
 public:
  // `rules` are those of every level. Asks the first endpoint for metadata and configuration and
  // builds the request. Errors: nothing answers (kPrecondition), unknown model (kNotFound), a
  // shape, batch size or data type that the model does not take (kUsage).
  static Result<std::unique_ptr<LoadGenerator>> open(const Target& target,
                                                     const InputOptions& input,
                                                     const MeasurementRules& rules,
                                                     const GeneratorOptions& options);
  ~LoadGenerator();
  LoadGenerator(const LoadGenerator&) = delete;
  LoadGenerator& operator=(const LoadGenerator&) = delete;

  const TargetDescription& description() const;

  // Called after every window of a level, with the level's windows so far.
  using OnWindow = std::function<void(const Level&, const std::vector<WindowResult>&)>;
  void on_window(OnWindow callback);

  // Runs one level until it is stable, out of windows or stopped. A failed request is counted and
  // the load goes on. `stop` may be set by a signal handler or another thread; it is looked at
  // every 20 ms. An interrupted level returns what it has, marked. Connections are kept for the
  // next level.
  LevelResult run_level(const Level& level, const std::atomic<bool>& stop);
  // When the requests of the latest level left and were answered; with keep_times, once.
  LevelTimes take_times();
  // Sends nothing more and waits for the answers in flight (at most 2 s, or until `stop`).
  void stop_load(const std::atomic<bool>& stop);

  const MeasurementRules& rules() const;

 private:
  class Impl;
  explicit LoadGenerator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs the levels of a sweep and reports each as soon as it is finished, an unstable one too. Stops
// early when `stop` is set; an interrupted level is reported if it completed any request. Waits for
// the answers in flight at the end.
void run_sweep(LoadGenerator& generator, LevelSweep sweep, const std::atomic<bool>& stop,
               const std::function<void(const LevelResult&)>& on_level);

}  // namespace septet::measure
