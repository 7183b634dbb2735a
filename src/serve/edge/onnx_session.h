// OnnxEngine: sessions and runs of an opened ONNX Runtime; private to the onnxruntime backend.
//
// Two implementations, one is built: onnx_session.cc where the headers of ONNX Runtime were found
// when septet was configured, onnx_session_missing.cc otherwise, which says so.
#pragma once

#include <memory>
#include <string>

#include "serve/backend.h"

namespace septet::serve {

class OnnxEngine {
 public:
  virtual ~OnnxEngine() = default;

  // get_api_base: the address of the library's OrtGetApiBase; null is an error.
  static Result<std::unique_ptr<OnnxEngine>> start(void* get_api_base);

  virtual std::string version() const = 0;
  virtual Result<std::unique_ptr<BackendModel>> load(const std::string& path,
                                                     const ModelConfig& config,
                                                     int intra_op_threads) = 0;
};

}  // namespace septet::serve
