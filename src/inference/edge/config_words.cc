#include "inference/edge/config_words.h"

#include <algorithm>

namespace septet::inference {

namespace {

namespace proto = ::inference;

template <typename Repeated>
Shape shape_of(const Repeated& dims) {
  return {dims.begin(), dims.end()};
}

Datatype datatype_of(proto::DataType type) { return static_cast<Datatype>(type); }

Duration from_us(std::uint64_t count) {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 50;  // 35 years; keeps sums in range
  return microseconds(static_cast<std::int64_t>(std::min(count, kLongest)));
}

template <typename Tensor>
TensorConfig tensor_of(const Tensor& from) {
  TensorConfig to{.name = from.name(), .datatype = datatype_of(from.data_type())};
  to.dims = shape_of(from.dims());
  if (from.has_reshape()) {
    to.reshape = shape_of(from.reshape().shape());
  }
  return to;
}

VersionPolicy policy_of(const proto::ModelVersionPolicy& from) {
  VersionPolicy to;
  if (from.has_all()) {
    to.kind = VersionPolicy::Kind::kAll;
  } else if (from.has_specific()) {
    to.kind = VersionPolicy::Kind::kSpecific;
    to.versions = shape_of(from.specific().versions());
  } else if (from.has_latest()) {
    to.latest = std::max(from.latest().num_versions(), 1U);
  }
  return to;
}

InstanceGroup group_of(const proto::ModelInstanceGroup& from) {
  InstanceGroup to{.name = from.name()};
  to.kind = static_cast<InstanceGroup::Kind>(from.kind());
  to.count = std::max(from.count(), 1);
  to.gpus.assign(from.gpus().begin(), from.gpus().end());
  for (const auto& resource : from.rate_limiter().resources()) {
    to.resources.push_back({resource.name(), resource.global(), resource.count()});
  }
  to.rate_priority = from.rate_limiter().priority();
  return to;
}

QueuePolicy queue_policy_of(const proto::ModelQueuePolicy& from) {
  QueuePolicy to;
  to.timeout_action = from.timeout_action() == proto::ModelQueuePolicy::DELAY
                          ? QueuePolicy::TimeoutAction::kDelay
                          : QueuePolicy::TimeoutAction::kReject;
  to.default_timeout = from_us(from.default_timeout_microseconds());
  to.allow_timeout_override = from.allow_timeout_override();
  to.max_queue_size = from.max_queue_size();
  return to;
}

DynamicBatching batching_of(const proto::ModelDynamicBatching& from) {
  DynamicBatching to;
  to.preferred_batch_sizes.assign(from.preferred_batch_size().begin(),
                                  from.preferred_batch_size().end());
  std::sort(to.preferred_batch_sizes.begin(), to.preferred_batch_sizes.end());
  to.max_queue_delay = from_us(from.max_queue_delay_microseconds());
  to.preserve_ordering = from.preserve_ordering();
  to.priority_levels = static_cast<std::uint32_t>(from.priority_levels());
  to.default_priority_level = static_cast<std::uint32_t>(from.default_priority_level());
  to.default_queue_policy = queue_policy_of(from.default_queue_policy());
  for (const auto& [level, policy] : from.priority_queue_policy()) {
    to.priority_queue_policies[static_cast<std::uint32_t>(level)] = queue_policy_of(policy);
  }
  return to;
}

SequenceControl control_of(const std::string& input,
                           const proto::ModelSequenceBatching::Control& from) {
  SequenceControl to{.input_name = input};
  to.kind = static_cast<SequenceControl::Kind>(from.kind());
  if (from.int32_false_true_size() == 2) {
    to.datatype = Datatype::kInt32;
    to.false_value = from.int32_false_true(0);
    to.true_value = from.int32_false_true(1);
  } else if (from.fp32_false_true_size() == 2) {
    to.datatype = Datatype::kFp32;
    to.false_value = static_cast<double>(from.fp32_false_true(0));
    to.true_value = static_cast<double>(from.fp32_false_true(1));
  } else if (from.bool_false_true_size() == 2) {
    to.datatype = Datatype::kBool;
    to.false_value = from.bool_false_true(0) ? 1 : 0;
    to.true_value = from.bool_false_true(1) ? 1 : 0;
  }
  if (to.kind == SequenceControl::Kind::kCorrelationId) {
    to.datatype = datatype_of(from.data_type());
  }
  return to;
}

SequenceBatching sequences_of(const proto::ModelSequenceBatching& from) {
  SequenceBatching to;
  if (from.max_sequence_idle_microseconds() != 0) {
    to.max_sequence_idle = from_us(from.max_sequence_idle_microseconds());
  }
  for (const auto& input : from.control_input()) {
    for (const auto& control : input.control()) {
      to.controls.push_back(control_of(input.name(), control));
    }
  }
  for (const auto& state : from.state()) {
    SequenceState& added = to.states.emplace_back();
    added.input_name = state.input_name();
    added.output_name = state.output_name();
    added.datatype = datatype_of(state.data_type());
    added.dims = shape_of(state.dims());
    if (state.initial_state_size() > 0 && state.initial_state(0).has_data_file()) {
      added.initial_file = state.initial_state(0).data_file();
    }
  }
  if (from.has_oldest()) {
    to.strategy = SequenceBatching::Strategy::kOldest;
    to.max_candidate_sequences = from.oldest().max_candidate_sequences();
    to.preferred_batch_sizes.assign(from.oldest().preferred_batch_size().begin(),
                                    from.oldest().preferred_batch_size().end());
    to.max_queue_delay = from_us(from.oldest().max_queue_delay_microseconds());
    to.preserve_ordering = from.oldest().preserve_ordering();
  } else if (from.has_direct()) {
    to.max_queue_delay = from_us(from.direct().max_queue_delay_microseconds());
    to.minimum_slot_utilization = from.direct().minimum_slot_utilization();
  }
  return to;
}

EnsembleStep step_of(const proto::ModelEnsembling::Step& from) {
  EnsembleStep to{.model_name = from.model_name()};
  to.model_version = from.model_version() == 0 ? -1 : from.model_version();
  to.input_map = {from.input_map().begin(), from.input_map().end()};
  to.output_map = {from.output_map().begin(), from.output_map().end()};
  return to;
}

WarmupSample warmup_of(const proto::ModelWarmup& from) {
  WarmupSample to{.name = from.name(), .batch_size = from.batch_size()};
  to.count = std::max(from.count(), 1U);
  for (const auto& [name, input] : from.inputs()) {
    WarmupInput& added = to.inputs[name];
    added.datatype = datatype_of(input.data_type());
    added.dims = shape_of(input.dims());
    if (input.has_input_data_file()) {
      added.source = WarmupInput::Source::kFile;
      added.file = input.input_data_file();
    } else if (input.random_data()) {
      added.source = WarmupInput::Source::kRandom;
    }
  }
  return to;
}

void take_tensors(const proto::ModelConfig& from, ModelConfig& to) {
  for (const proto::ModelInput& input : from.input()) {
    TensorConfig& added = to.inputs.emplace_back(tensor_of(input));
    added.optional = input.optional();
    added.ragged = input.allow_ragged_batch();
  }
  for (const proto::ModelOutput& output : from.output()) {
    TensorConfig& added = to.outputs.emplace_back(tensor_of(output));
    added.label_filename = output.label_filename();
  }
}

void take_optimization(const proto::ModelOptimizationPolicy& from, ModelConfig& to) {
  if (from.has_graph()) {
    to.graph_level = from.graph().level();
  }
}

void take_scheduling(const proto::ModelConfig& from, ModelConfig& to) {
  if (from.has_dynamic_batching()) {
    to.dynamic_batching = batching_of(from.dynamic_batching());
  }
  if (from.has_sequence_batching()) {
    to.sequence_batching = sequences_of(from.sequence_batching());
  }
  for (const auto& step : from.ensemble_scheduling().step()) {
    to.ensemble_steps.push_back(step_of(step));
  }
}

}  // namespace

ModelConfig config_words(const proto::ModelConfig& message) {
  ModelConfig words{.name = message.name()};
  words.platform = message.platform();
  words.backend = message.backend();
  words.version_policy = policy_of(message.version_policy());
  words.max_batch_size = message.max_batch_size();
  take_tensors(message, words);
  for (const auto& group : message.instance_group()) {
    words.instance_groups.push_back(group_of(group));
  }
  take_scheduling(message, words);
  for (const auto& sample : message.model_warmup()) {
    words.warmup.push_back(warmup_of(sample));
  }
  words.default_model_filename = message.default_model_filename();
  for (const auto& [name, parameter] : message.parameters()) {
    words.parameters[name] = parameter.string_value();
  }
  words.metric_tags = {message.metric_tags().begin(), message.metric_tags().end()};
  take_optimization(message.optimization(), words);
  words.response_cache = message.response_cache().enable();
  words.decoupled = message.model_transaction_policy().decoupled();
  return words;
}

}  // namespace septet::inference
