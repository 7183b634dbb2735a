// ModelConfig: what a model's config.pbtxt says, in the words of the deciding code.
//
// A value type. Read from text, completed from the model and written out again at the edge
// (edge/config_document.h); only fields that septet acts on are here. Units end the names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "inference/datatype.h"

namespace septet::inference {

// One input or output as the outside sees it: dims without the batch, -1 = any.
struct TensorConfig {
  std::string name{};
  Datatype datatype = Datatype::kInvalid;
  Shape dims{};
  std::optional<Shape> reshape{};  // what the backend gets instead of dims
  std::string label_filename{};    // outputs: line n names index n
  bool optional = false;           // inputs: a request may leave it out
  bool ragged = false;             // inputs: requests of other shapes may share a batch

  const Shape& backend_dims() const { return reshape ? *reshape : dims; }
};

struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  std::uint32_t latest = 1;
  std::vector<std::int64_t> versions{};
};

// What an instance must hold while it runs, when the rate limiter is on.
struct RateResource {
  std::string name{};
  bool global = false;
  std::uint32_t count = 0;
};

struct InstanceGroup {
  enum class Kind { kAuto, kGpu, kCpu, kModel };
  std::string name{};
  Kind kind = Kind::kAuto;
  int count = 1;
  std::vector<int> gpus{};
  std::vector<RateResource> resources{};
  std::uint32_t rate_priority = 0;
};

struct QueuePolicy {
  enum class TimeoutAction { kReject, kDelay };
  TimeoutAction timeout_action = TimeoutAction::kReject;
  Duration default_timeout{};  // 0 = none
  bool allow_timeout_override = false;
  std::uint32_t max_queue_size = 0;  // 0 = no limit of its own
};

struct DynamicBatching {
  std::vector<int> preferred_batch_sizes{};
  Duration max_queue_delay{};
  bool preserve_ordering = false;
  std::uint32_t priority_levels = 0;
  std::uint32_t default_priority_level = 0;
  QueuePolicy default_queue_policy{};
  std::map<std::uint32_t, QueuePolicy> priority_queue_policies{};
};

// An input that the sequence scheduler fills in itself.
struct SequenceControl {
  enum class Kind { kStart, kReady, kEnd, kCorrelationId };
  std::string input_name{};
  Kind kind = Kind::kStart;
  Datatype datatype = Datatype::kInvalid;  // of the correlation id, else of the two values
  double false_value = 0;
  double true_value = 1;
};

// An output that becomes an input of the sequence's next request.
struct SequenceState {
  std::string input_name{};
  std::string output_name{};
  Datatype datatype = Datatype::kInvalid;
  Shape dims{};
  std::string initial_file{};  // under initial_state/; empty = zeros
};

struct SequenceBatching {
  enum class Strategy { kDirect, kOldest };
  Strategy strategy = Strategy::kDirect;
  Duration max_sequence_idle = seconds(1);
  std::vector<SequenceControl> controls{};
  std::vector<SequenceState> states{};
  Duration max_queue_delay{};
  float minimum_slot_utilization = 0;        // direct
  int max_candidate_sequences = 0;           // oldest
  std::vector<int> preferred_batch_sizes{};  // oldest
  bool preserve_ordering = false;            // oldest
};

struct EnsembleStep {
  std::string model_name{};
  std::int64_t model_version = -1;                  // -1 = the newest
  std::map<std::string, std::string> input_map{};   // step's input -> ensemble tensor
  std::map<std::string, std::string> output_map{};  // step's output -> ensemble tensor
};

struct WarmupInput {
  enum class Source { kZero, kRandom, kFile };
  Datatype datatype = Datatype::kInvalid;
  Shape dims{};  // without the batch
  Source source = Source::kZero;
  std::string file{};  // under warmup/
};

struct WarmupSample {
  std::string name{};
  std::uint32_t batch_size = 0;
  std::uint32_t count = 1;
  std::map<std::string, WarmupInput> inputs{};
};

struct ModelConfig {
  std::string name{};
  std::string platform{};
  std::string backend{};
  VersionPolicy version_policy{};
  int max_batch_size = 0;  // 0 = the model has no batch dimension of its own
  std::vector<TensorConfig> inputs{};
  std::vector<TensorConfig> outputs{};
  std::vector<InstanceGroup> instance_groups{};
  std::optional<DynamicBatching> dynamic_batching{};
  std::optional<SequenceBatching> sequence_batching{};
  std::vector<EnsembleStep> ensemble_steps{};
  std::vector<WarmupSample> warmup{};
  std::string default_model_filename{};
  std::map<std::string, std::string> parameters{};
  std::map<std::string, std::string> metric_tags{};
  std::optional<int> graph_level{};  // optimization.graph.level
  bool response_cache = false;
  bool decoupled = false;

  const TensorConfig* find_input(std::string_view input_name) const;
  const TensorConfig* find_output(std::string_view output_name) const;
  bool is_ensemble() const { return !ensemble_steps.empty(); }
  // Instances over all groups; at least 1.
  int instance_count() const;
  // Whether a group is of KIND_GPU.
  bool asks_for_gpu() const;
};

// The tensors a model file itself declares: what auto-completion goes by.
struct ModelSignature {
  struct Tensor {
    std::string name{};
    Datatype datatype = Datatype::kInvalid;
    Shape shape{};  // with the batch dimension, if the model has one; -1 = free
  };
  std::vector<Tensor> inputs{};
  std::vector<Tensor> outputs{};
};

}  // namespace septet::inference
