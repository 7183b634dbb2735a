#include "serve/edge/timed_backend.h"

#include <fmt/format.h>

#include <thread>

#include "base/text.h"
#include "inference/config_check.h"
#include "serve/edge/model_files.h"
#include "serve/model_versions.h"
#include "serve/service_time.h"

namespace septet::serve {

namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{16} << 20;

std::string parameter(const ModelConfig& config, const std::string& name,
                      const std::string& otherwise) {
  const auto found = config.parameters.find(name);
  return found == config.parameters.end() ? otherwise : found->second;
}

Result<double> number(const ModelConfig& config, const std::string& name) {
  const std::string text = parameter(config, name, "0");
  const auto value = parse_double(text);
  if (!value || *value < 0) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("parameter '{}' is '{}', not a number of 0 or more", name, text));
  }
  return *value;
}

// Free dimensions become 1: a table has no say in how long an answer is.
Shape answer_shape(const ModelConfig& config, const inference::TensorConfig& output, int batch) {
  Shape shape = inference::backend_shape(config, output);
  for (std::int64_t& dimension : shape) {
    dimension = dimension == -1 ? 1 : dimension;
  }
  if (config.max_batch_size > 0) {
    shape.front() = batch;
  }
  return shape;
}

OutputTensor zeros(const ModelConfig& config, const inference::TensorConfig& output, int batch) {
  OutputTensor tensor{.name = output.name, .datatype = output.datatype};
  tensor.shape = answer_shape(config, output, batch);
  constexpr std::size_t kLengthBytes = 4;  // an empty string is its length alone
  const std::size_t each =
      output.datatype == Datatype::kBytes ? kLengthBytes : inference::element_size(output.datatype);
  const std::uint64_t count = inference::element_count(tensor.shape).value_or(0);
  tensor.data = inference::own_bytes(std::vector<std::byte>(count * each));
  return tensor;
}

class TimedInstance : public ModelInstance {
 public:
  TimedInstance(const ServiceTimes& times, std::string slice, TimeVariation variation,
                std::uint64_t seed, ModelConfig config)
      : times_(times),
        slice_(std::move(slice)),
        variation_(variation),
        prng_(seed),
        config_(std::move(config)) {}

  Outcome<std::vector<OutputTensor>> run(const RunArguments& arguments) override {
    const Result<Duration> time = times_.time(slice_, arguments.batch_size);
    if (!time.ok()) {
      return inference::internal_error(time.error().text());
    }
    std::this_thread::sleep_for(vary(*time, variation_, prng_));
    std::vector<OutputTensor> outputs;
    for (const std::string& name : arguments.outputs) {
      outputs.push_back(zeros(config_, *config_.find_output(name), arguments.batch_size));
    }
    return outputs;
  }

 private:
  const ServiceTimes& times_;
  std::string slice_;
  TimeVariation variation_;
  Prng prng_;
  ModelConfig config_;
};

class TimedModel : public BackendModel {
 public:
  TimedModel(ServiceTimes times, std::string slice, TimeVariation variation, std::uint64_t seed,
             const ModelConfig& config)
      : times_(std::move(times)), slice_(std::move(slice)), variation_(variation), seed_(seed) {
    for (const auto& input : config.inputs) {
      signature_.inputs.push_back(
          {input.name, input.datatype, inference::backend_shape(config, input)});
    }
    for (const auto& output : config.outputs) {
      signature_.outputs.push_back(
          {output.name, output.datatype, inference::backend_shape(config, output)});
    }
  }

  const ModelSignature& signature() const override { return signature_; }
  Result<std::unique_ptr<ModelInstance>> make_instance(const ModelConfig& config,
                                                       int index) override {
    return std::unique_ptr<ModelInstance>(std::make_unique<TimedInstance>(
        times_, slice_, variation_, seed_ + static_cast<std::uint64_t>(index), config));
  }

 private:
  ServiceTimes times_;
  std::string slice_;
  TimeVariation variation_;
  std::uint64_t seed_;
  ModelSignature signature_;
};

}  // namespace

Result<std::unique_ptr<BackendModel>> TimedBackend::load(const LoadArguments& arguments) {
  const ModelConfig& config = *arguments.config;
  std::string path = options_.service_times_path;
  if (const std::string own = parameter(config, "service_times", ""); !own.empty()) {
    if (!is_safe_path(own)) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("service_times '{}' leaves the model's folder", own));
    }
    path = arguments.model_folder + "/" + own;
  }
  if (path.empty()) {
    return make_error(ErrorKind::kUsage, "a timed model needs a table of service times",
                      "name a CSV in its folder with the parameter service_times, or give "
                      "--service-times");
  }
  auto csv = read_whole_file(path, kMaxTableBytes);
  if (!csv.ok()) {
    return csv.error();
  }
  auto times = ServiceTimes::parse(*csv, parameter(config, "model", config.name));
  if (!times.ok()) {
    return make_error(times.error().kind, fmt::format("{}: {}", path, times.error().message),
                      times.error().hint);
  }
  const auto jitter = number(config, "jitter");
  const auto stall_chance = number(config, "stall_chance");
  const auto stall_us = number(config, "stall_us");
  for (const auto* read : {&jitter, &stall_chance, &stall_us}) {
    SEPTET_TRY(*read);
  }
  const std::string slice = parameter(config, "slice", options_.slice);
  SEPTET_TRY(times->time(slice, 1));
  const TimeVariation variation{*jitter, *stall_chance, from_seconds(*stall_us * 1e-6)};
  const auto seed = parse_uint(parameter(config, "seed", ""));
  return std::unique_ptr<BackendModel>(std::make_unique<TimedModel>(
      std::move(*times), slice, variation, seed.value_or(options_.seed), config));
}

}  // namespace septet::serve
