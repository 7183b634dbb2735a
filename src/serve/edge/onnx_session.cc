#include "serve/edge/onnx_session.h"

#define ORT_API_MANUAL_INIT
#include <fmt/format.h>
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace septet::serve {

using inference::internal_error;

namespace {

Datatype datatype_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
      return Datatype::kBool;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
      return Datatype::kUint8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
      return Datatype::kUint16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
      return Datatype::kUint32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
      return Datatype::kUint64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
      return Datatype::kInt8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
      return Datatype::kInt16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
      return Datatype::kInt32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
      return Datatype::kInt64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
      return Datatype::kFp16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
      return Datatype::kFp32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
      return Datatype::kFp64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
      return Datatype::kBytes;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
      return Datatype::kBf16;
    default:  // complex and 4- and 8-bit float types, which the protocol lacks
      return Datatype::kInvalid;
  }
}

ONNXTensorElementDataType onnx_type(Datatype datatype) {
  switch (datatype) {
    case Datatype::kInvalid:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    case Datatype::kBool:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    case Datatype::kUint8:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    case Datatype::kUint16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
    case Datatype::kUint32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32;
    case Datatype::kUint64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
    case Datatype::kInt8:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
    case Datatype::kInt16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16;
    case Datatype::kInt32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case Datatype::kInt64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case Datatype::kFp16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case Datatype::kFp32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case Datatype::kFp64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
    case Datatype::kBytes:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    case Datatype::kBf16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

ModelSignature::Tensor tensor_of(std::string name, const Ort::TypeInfo& type) {
  ModelSignature::Tensor tensor{.name = std::move(name)};
  if (type.GetONNXType() == ONNX_TYPE_TENSOR) {
    const auto info = type.GetTensorTypeAndShapeInfo();
    tensor.datatype = datatype_of(info.GetElementType());
    tensor.shape = info.GetShape();
  }
  return tensor;
}

ModelSignature signature_of(Ort::Session& session) {
  Ort::AllocatorWithDefaultOptions allocator;
  ModelSignature signature;
  for (std::size_t i = 0; i < session.GetInputCount(); ++i) {
    signature.inputs.push_back(
        tensor_of(session.GetInputNameAllocated(i, allocator).get(), session.GetInputTypeInfo(i)));
  }
  for (std::size_t i = 0; i < session.GetOutputCount(); ++i) {
    signature.outputs.push_back(tensor_of(session.GetOutputNameAllocated(i, allocator).get(),
                                          session.GetOutputTypeInfo(i)));
  }
  return signature;
}

// A number among the configuration's parameters, or what the server's options say.
int parameter_or(const ModelConfig& config, const std::string& name, int otherwise) {
  const auto found = config.parameters.find(name);
  return found == config.parameters.end()
             ? otherwise
             : static_cast<int>(parse_int(found->second).value_or(otherwise));
}

Ort::SessionOptions session_options(const ModelConfig& config, int intra_op_threads) {
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(intra_op_threads);
  options.SetInterOpNumThreads(parameter_or(config, "inter_op_thread_count", 1));
  // A waiting thread that spins would eat the share of the slice that another one needs.
  options.AddConfigEntry("session.intra_op.allow_spinning", "0");
  options.AddConfigEntry("session.inter_op.allow_spinning", "0");
  const auto mode = config.parameters.find("execution_mode");
  options.SetExecutionMode(mode != config.parameters.end() && mode->second == "1" ? ORT_PARALLEL
                                                                                  : ORT_SEQUENTIAL);
  GraphOptimizationLevel level = ORT_ENABLE_ALL;
  if (config.graph_level && *config.graph_level < 0) {
    level = ORT_ENABLE_BASIC;
  } else if (config.graph_level && *config.graph_level == 1) {
    level = ORT_ENABLE_EXTENDED;
  }
  options.SetGraphOptimizationLevel(level);
  return options;
}

// One instance's way to run the session it shares or owns.
class OnnxInstance : public ModelInstance {
 public:
  explicit OnnxInstance(std::shared_ptr<Ort::Session> session) : session_(std::move(session)) {}

  Outcome<std::vector<OutputTensor>> run(const RunArguments& arguments) override {
    try {
      return run_session(arguments);
    } catch (const std::exception& error) {  // Ort::Exception, bad_alloc
      return internal_error(fmt::format("onnx runtime error: {}", error.what()));
    }
  }

 private:
  Outcome<std::vector<OutputTensor>> run_session(const RunArguments& arguments) {
    std::vector<const char*> input_names;
    std::vector<Ort::Value> inputs;
    names_.clear();
    names_.reserve(arguments.inputs.size());  // c_str() of short strings must not move
    aligned_.clear();
    for (const TensorView& view : arguments.inputs) {
      names_.emplace_back(view.name);
      input_names.push_back(names_.back().c_str());
      inputs.push_back(value_of(view));
    }
    std::vector<const char*> output_names;
    for (const std::string& name : arguments.outputs) {
      output_names.push_back(name.c_str());
    }
    std::vector<Ort::Value> values =
        session_->Run(Ort::RunOptions{nullptr}, input_names.data(), inputs.data(), inputs.size(),
                      output_names.data(), output_names.size());
    std::vector<OutputTensor> outputs;
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto output = output_of(arguments.outputs[i], std::move(values[i]));
      SEPTET_TRY(output);
      outputs.push_back(std::move(*output));
    }
    return outputs;
  }

  // A view of the caller's bytes; of a copy when they are not aligned for their type.
  Ort::Value value_of(const TensorView& view) {
    if (view.datatype == Datatype::kBytes) {
      return strings_of(view);
    }
    std::span<const std::byte> bytes = view.bytes;
    const std::size_t size = inference::element_size(view.datatype);
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % size != 0) {
      aligned_.emplace_back(bytes.begin(), bytes.end());
      bytes = aligned_.back();
    }
    return Ort::Value::CreateTensor(memory_, const_cast<std::byte*>(bytes.data()), bytes.size(),
                                    view.shape.data(), view.shape.size(), onnx_type(view.datatype));
  }

  Ort::Value strings_of(const TensorView& view) {
    Ort::AllocatorWithDefaultOptions allocator;
    Ort::Value value = Ort::Value::CreateTensor(allocator, view.shape.data(), view.shape.size(),
                                                ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
    const auto elements = inference::split_bytes_elements(view.bytes);
    CHECK(elements.has_value());  // the request was checked
    for (std::size_t i = 0; i < elements->size(); ++i) {
      const std::string_view text = (*elements)[i];
      char* to = value.GetResizedStringTensorElementBuffer(i, text.size());
      std::copy(text.begin(), text.end(), to);
    }
    return value;
  }

  static Outcome<OutputTensor> output_of(const std::string& name, Ort::Value value) {
    if (!value.IsTensor()) {
      return internal_error(fmt::format("output '{}' is not a tensor", name));
    }
    const auto info = value.GetTensorTypeAndShapeInfo();
    OutputTensor output{.name = name, .datatype = datatype_of(info.GetElementType())};
    output.shape = info.GetShape();
    if (output.datatype == Datatype::kInvalid) {
      return internal_error(fmt::format("output '{}' has a type that the protocol lacks", name));
    }
    if (output.datatype == Datatype::kBytes) {
      std::vector<std::byte> bytes;
      for (std::size_t i = 0; i < info.GetElementCount(); ++i) {
        inference::append_bytes_element(bytes, value.GetStringTensorElement(i));
      }
      output.data = inference::own_bytes(std::move(bytes));
      return output;
    }
    const std::size_t size = info.GetElementCount() * inference::element_size(output.datatype);
    auto owner = std::make_shared<Ort::Value>(std::move(value));
    const auto* data = static_cast<const std::byte*>(owner->GetTensorRawData());
    output.data = Blob{{data, size}, std::move(owner)};
    return output;
  }

  std::shared_ptr<Ort::Session> session_;
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> aligned_;
};

class OnnxModel : public BackendModel {
 public:
  OnnxModel(std::shared_ptr<Ort::Env> env, std::string path, int intra_op_threads)
      : env_(std::move(env)), path_(std::move(path)), intra_op_threads_(intra_op_threads) {}

  // May throw Ort::Exception.
  void open(const ModelConfig& config) {
    intra_op_threads_ = parameter_or(config, "intra_op_thread_count", intra_op_threads_);
    first_ = new_session(config);
    signature_ = signature_of(*first_);
  }

  const ModelSignature& signature() const override { return signature_; }

  Result<std::unique_ptr<ModelInstance>> make_instance(const ModelConfig& config,
                                                       int index) override {
    try {
      const bool shares = index == 0 || intra_op_threads_ == 1;
      return std::unique_ptr<ModelInstance>(
          std::make_unique<OnnxInstance>(shares ? first_ : new_session(config)));
    } catch (const std::exception& error) {
      return make_error(ErrorKind::kFailed, fmt::format("cannot make instance {} of {}: {}", index,
                                                        path_, error.what()));
    }
  }

 private:
  std::shared_ptr<Ort::Session> new_session(const ModelConfig& config) const {
    return std::make_shared<Ort::Session>(*env_, path_.c_str(),
                                          session_options(config, intra_op_threads_));
  }

  std::shared_ptr<Ort::Env> env_;
  std::string path_;
  int intra_op_threads_;
  std::shared_ptr<Ort::Session> first_;
  ModelSignature signature_;
};

class Engine : public OnnxEngine {
 public:
  explicit Engine(std::string version)
      : version_(std::move(version)),
        env_(std::make_shared<Ort::Env>(ORT_LOGGING_LEVEL_ERROR, "septet")) {
    env_->DisableTelemetryEvents();
  }

  std::string version() const override { return version_; }

  Result<std::unique_ptr<BackendModel>> load(const std::string& path, const ModelConfig& config,
                                             int intra_op_threads) override {
    try {
      auto model = std::make_unique<OnnxModel>(env_, path, intra_op_threads);
      model->open(config);
      return std::unique_ptr<BackendModel>(std::move(model));
    } catch (const std::exception& error) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("ONNX Runtime cannot load {}: {}", path, error.what()),
                        "check the file with another tool, or export it again");
    }
  }

 private:
  std::string version_;
  std::shared_ptr<Ort::Env> env_;
};

}  // namespace

Result<std::unique_ptr<OnnxEngine>> OnnxEngine::start(void* get_api_base) {
  if (get_api_base == nullptr) {
    return make_error(ErrorKind::kPrecondition, "it has no symbol OrtGetApiBase",
                      "name ONNX Runtime's library with SEPTET_ONNXRUNTIME");
  }
  using GetApiBase = const OrtApiBase* (*)();
  const OrtApiBase* base = reinterpret_cast<GetApiBase>(get_api_base)();
  const std::string version = base->GetVersionString();
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    return make_error(
        ErrorKind::kPrecondition,
        fmt::format("version {} is older than the interface {} that septet was built for", version,
                    ORT_API_VERSION),
        "run scripts/setup for a newer library");
  }
  Ort::InitApi(api);
  try {
    return std::unique_ptr<OnnxEngine>(std::make_unique<Engine>(version));
  } catch (const std::exception& error) {
    return make_error(ErrorKind::kFailed, error.what());
  }
}

}  // namespace septet::serve
