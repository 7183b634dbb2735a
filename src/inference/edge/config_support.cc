#include "inference/edge/config_support.h"

#include <array>

namespace septet::inference {

namespace {

constexpr std::array kRefused = {
    RefusedField{"inference.ModelConfig.runtime", "backends are chosen by 'backend' alone"},
    RefusedField{"inference.ModelConfig.batch_input",
                 "batches are made of equal shapes, so no backend asks for ragged offsets"},
    RefusedField{"inference.ModelConfig.batch_output",
                 "batches are made of equal shapes, so no output needs scattering"},
    RefusedField{"inference.ModelConfig.cc_model_filenames",
                 "one model file serves every device; use default_model_filename"},
    RefusedField{"inference.ModelConfig.model_operations",
                 "custom operator libraries are not loaded into the server"},
    RefusedField{"inference.ModelConfig.model_repository_agents",
                 "agents are foreign libraries, which are not loaded into the server"},
    RefusedField{"inference.ModelConfig.model_metrics",
                 "histogram buckets are fixed; scrape the *_duration_us counters"},
    RefusedField{"inference.ModelInput.is_shape_tensor", "shape tensors are TensorRT's"},
    RefusedField{"inference.ModelInput.is_non_linear_format_io",
                 "non-linear formats are TensorRT's"},
    RefusedField{"inference.ModelOutput.is_shape_tensor", "shape tensors are TensorRT's"},
    RefusedField{"inference.ModelOutput.is_non_linear_format_io",
                 "non-linear formats are TensorRT's"},
    RefusedField{"inference.ModelInput.allow_ragged_batch",
                 "requests of different shapes never share a batch here"},
    RefusedField{"inference.ModelInstanceGroup.secondary_devices", "there is no NVDLA backend"},
    RefusedField{"inference.ModelInstanceGroup.profile", "optimization profiles are TensorRT's"},
    RefusedField{"inference.ModelInstanceGroup.passive",
                 "an instance that never runs has no use here"},
    RefusedField{"inference.ModelInstanceGroup.host_policy",
                 "pin the replica's process instead (septet up)"},
    RefusedField{"inference.ModelOptimizationPolicy.ExecutionAccelerators."
                 "gpu_execution_accelerator",
                 "TensorRT is not offered"},
    RefusedField{"inference.ModelOptimizationPolicy.ExecutionAccelerators."
                 "cpu_execution_accelerator",
                 "OpenVINO is not offered; intra_op_thread_count goes into 'parameters'"},
    RefusedField{"inference.ModelSequenceBatching.iterative_sequence",
                 "a backend cannot put a request back into the queue"},
    RefusedField{"inference.ModelTransactionPolicy.decoupled",
                 "no backend here answers a request more than once"},
    RefusedField{"inference.ModelEnsembling.max_inflight_requests",
                 "limit the queue of the ensemble's first model instead"},
    RefusedField{"inference.ModelEnsembling.Step.model_namespace",
                 "all models share one name space"},
};

}  // namespace

std::span<const RefusedField> refused_fields() { return kRefused; }

std::string_view why_refused(std::string_view field) {
  for (const RefusedField& refused : kRefused) {
    if (refused.field == field) {
      return refused.why;
    }
  }
  return {};
}

}  // namespace septet::inference
