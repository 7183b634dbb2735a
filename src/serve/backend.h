// Backend: how a model file becomes something that runs. The seam between serving and engines.
//
//   Backend --load--> BackendModel --make_instance--> ModelInstance --run--> outputs
//
// A Backend is owned by main's object graph and outlives its models; a BackendModel (one version of
// one model) outlives its instances. load and make_instance are called by one control thread;
// each instance is run by the one thread that owns it, never by two at a time. Implementations
// catch their engine's exceptions and answer with a Status.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/model_config.h"
#include "inference/tensor.h"

namespace septet::serve {

using inference::Blob;
using inference::Datatype;
using inference::ModelConfig;
using inference::ModelSignature;
using inference::Outcome;
using inference::OutputTensor;
using inference::Shape;
using inference::Status;

// An input as the engine gets it: shape with the batch dimension, bytes of the wire layout.
struct TensorView {
  std::string_view name{};
  Datatype datatype = Datatype::kInvalid;
  Shape shape{};
  std::span<const std::byte> bytes{};
};

// What a run gets: valid until run returns.
struct RunArguments {
  std::span<const TensorView> inputs{};
  std::span<const std::string> outputs{};  // names wanted, at least one
  int batch_size = 1;
  // The parameters of the request; null when the batch holds more than one.
  const inference::Parameters* parameters = nullptr;
};

class ModelInstance {
 public:
  virtual ~ModelInstance() = default;
  // One inference. The outputs are in the order wanted, shapes with the batch dimension; each
  // owns its bytes, which stay valid after the next run.
  virtual Outcome<std::vector<OutputTensor>> run(const RunArguments& arguments) = 0;
};

class BackendModel {
 public:
  virtual ~BackendModel() = default;
  // The tensors that the model file declares; empty lists when it declares none.
  virtual const ModelSignature& signature() const = 0;
  virtual Result<std::unique_ptr<ModelInstance>> make_instance(const ModelConfig& config,
                                                               int index) = 0;
};

// Where a version's files lie and what is known of the model before it is loaded.
struct LoadArguments {
  std::string model_name{};
  std::string model_folder{};           // REPO/M
  std::string version_folder{};         // REPO/M/V
  const ModelConfig* config = nullptr;  // not completed yet
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Result<std::unique_ptr<BackendModel>> load(const LoadArguments& arguments) = 0;
};

}  // namespace septet::serve
