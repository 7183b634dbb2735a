#include "support/fake_backend.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace septet::test_support {

using inference::OutputTensor;
using serve::Datatype;
using serve::ModelConfig;
using serve::ModelInstance;
using serve::Outcome;
using serve::RunArguments;
using serve::TensorView;

namespace {

std::vector<std::int32_t> numbers(const TensorView& view) {
  std::vector<std::int32_t> values(view.bytes.size() / 4);
  std::memcpy(values.data(), view.bytes.data(), values.size() * 4);
  return values;
}

OutputTensor tensor(const std::string& name, const TensorView& like, std::string bytes) {
  OutputTensor output{.name = name, .datatype = like.datatype, .shape = like.shape};
  output.data = inference::own_text(std::move(bytes));
  return output;
}

std::string bytes_of(const std::vector<std::int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
}

class FakeInstance : public ModelInstance {
 public:
  FakeInstance(FakeBackend& backend, ModelConfig config)
      : backend_(backend), config_(std::move(config)), compute_(config_.parameters["compute"]) {}

  Outcome<std::vector<OutputTensor>> run(const RunArguments& arguments) override {
    backend_.record(arguments.batch_size);
    if (compute_ == "fail") {
      return inference::internal_error("the engine failed as told");
    }
    if (compute_ == "hold") {
      backend_.wait_if_held();
    }
    std::vector<OutputTensor> outputs;
    for (const std::string& name : arguments.outputs) {
      outputs.push_back(compute_ == "sum"        ? sum(name, arguments)
                        : compute_ == "sequence" ? sequence(name, arguments)
                        : compute_ == "zeros"    ? zeros(name, arguments)
                        : compute_ == "total"    ? total(name, arguments)
                        : compute_ == "told"     ? told(name, arguments)
                                                 : copy(name, arguments));
    }
    return outputs;
  }

 private:
  static OutputTensor sum(const std::string& name, const RunArguments& arguments) {
    const bool add = name == "OUTPUT0";
    if (arguments.inputs[0].datatype == Datatype::kBytes) {
      return sum_of_texts(name, add, arguments);
    }
    const auto a = numbers(arguments.inputs[0]);
    auto b = numbers(arguments.inputs[1]);
    for (std::size_t i = 0; i < a.size(); ++i) {
      b[i] = add ? a[i] + b[i] : a[i] - b[i];
    }
    return tensor(name, arguments.inputs[0], bytes_of(b));
  }

  static OutputTensor sum_of_texts(const std::string& name, bool add,
                                   const RunArguments& arguments) {
    const auto a = inference::split_bytes_elements(arguments.inputs[0].bytes).value();
    const auto b = inference::split_bytes_elements(arguments.inputs[1].bytes).value();
    std::vector<std::byte> sums;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const int left = std::stoi(std::string(a[i]));
      const int right = std::stoi(std::string(b[i]));
      inference::append_bytes_element(sums, std::to_string(add ? left + right : left - right));
    }
    OutputTensor output = tensor(name, arguments.inputs[0], "");
    output.data = inference::own_bytes(std::move(sums));
    return output;
  }

  OutputTensor zeros(const std::string& name, const RunArguments& arguments) const {
    const inference::TensorConfig& known = *config_.find_output(name);
    OutputTensor output{.name = name, .datatype = known.datatype, .shape = known.backend_dims()};
    for (std::int64_t& dimension : output.shape) {
      dimension = dimension == -1 ? 1 : dimension;
    }
    if (config_.max_batch_size > 0) {
      output.shape.insert(output.shape.begin(), arguments.batch_size);
    }
    const auto size = inference::byte_size(output.datatype, output.shape).value();
    output.data = inference::own_bytes(std::vector<std::byte>(size));
    return output;
  }

  OutputTensor copy(const std::string& name, const RunArguments& arguments) const {
    std::size_t at = 0;
    while (config_.outputs.at(at).name != name) {
      ++at;
    }
    const TensorView& view = arguments.inputs[at];
    return tensor(name, view,
                  {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()});
  }

  static OutputTensor total(const std::string& name, const RunArguments& arguments) {
    const TensorView* input = nullptr;
    std::vector<std::int32_t> sums(arguments.inputs[0].bytes.size() / 4);
    for (const TensorView& view : arguments.inputs) {
      const auto values = numbers(view);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += values[i];
      }
      input = view.name == "INPUT" ? &view : input;
    }
    return tensor(name, *input, bytes_of(sums));
  }

  static OutputTensor told(const std::string& name, const RunArguments& arguments) {
    std::vector<std::byte> texts;
    for (const auto& [key, value] : *arguments.parameters) {
      const std::string text =
          std::visit([](const auto& any) { return fmt::format("{}", any); }, value);
      inference::append_bytes_element(texts, fmt::format("{}={}", key, text));
    }
    const auto count = static_cast<std::int64_t>(arguments.parameters->size());
    OutputTensor output{.name = name, .datatype = Datatype::kBytes, .shape = {count}};
    output.data = inference::own_bytes(std::move(texts));
    return output;
  }

  static OutputTensor sequence(const std::string& name, const RunArguments& arguments) {
    const TensorView* input = nullptr;
    std::vector<std::int32_t> values;
    std::vector<std::int32_t> starts;
    std::vector<std::int32_t> ends;
    std::vector<std::uint64_t> ids;
    for (const TensorView& view : arguments.inputs) {
      if (view.name == "INPUT") {
        input = &view;
        values = numbers(view);
      } else if (view.name == "START") {
        starts = numbers(view);
      } else if (view.name == "END") {
        ends = numbers(view);
      } else if (view.name == "CORRID") {
        ids.resize(view.bytes.size() / 8);
        std::memcpy(ids.data(), view.bytes.data(), view.bytes.size());
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += i < starts.size() ? starts[i] : 0;
      values[i] +=
          i < ends.size() && ends[i] != 0 && i < ids.size() ? static_cast<std::int32_t>(ids[i]) : 0;
    }
    return tensor(name, *input, bytes_of(values));
  }

  FakeBackend& backend_;
  ModelConfig config_;
  std::string compute_;
};

class FakeModel : public serve::BackendModel {
 public:
  FakeModel(FakeBackend& backend, const ModelConfig& config) : backend_(backend) {
    for (const auto& input : config.inputs) {
      signature_.inputs.push_back({input.name, input.datatype, shape(config, input)});
    }
    for (const auto& output : config.outputs) {
      signature_.outputs.push_back({output.name, output.datatype, shape(config, output)});
    }
  }
  const inference::ModelSignature& signature() const override { return signature_; }
  Result<std::unique_ptr<ModelInstance>> make_instance(const ModelConfig& config,
                                                       int /*index*/) override {
    return std::unique_ptr<ModelInstance>(std::make_unique<FakeInstance>(backend_, config));
  }

 private:
  static inference::Shape shape(const ModelConfig& config, const inference::TensorConfig& tensor) {
    inference::Shape shape = tensor.backend_dims();
    if (config.max_batch_size > 0) {
      shape.insert(shape.begin(), -1);
    }
    return shape;
  }

  FakeBackend& backend_;
  inference::ModelSignature signature_;
};

}  // namespace

Result<std::unique_ptr<serve::BackendModel>> FakeBackend::load(
    const serve::LoadArguments& arguments) {
  if (arguments.config->parameters.contains("broken")) {
    return make_error(ErrorKind::kFailed, "the model is broken as told");
  }
  return std::unique_ptr<serve::BackendModel>(
      std::make_unique<FakeModel>(*this, *arguments.config));
}

std::vector<int> FakeBackend::batches() const {
  const std::lock_guard lock(mutex_);
  return batches_;
}

void FakeBackend::release() {
  {
    const std::lock_guard lock(mutex_);
    released_ = true;
  }
  changed_.notify_all();
}

void FakeBackend::hold() {
  const std::lock_guard lock(mutex_);
  released_ = false;
}

void FakeBackend::await_held(int count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return held_ >= count; });
}

void FakeBackend::record(int batch_size) {
  const std::lock_guard lock(mutex_);
  batches_.push_back(batch_size);
}

void FakeBackend::wait_if_held() {
  std::unique_lock lock(mutex_);
  ++held_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return released_; });
  --held_;
}

}  // namespace septet::test_support
