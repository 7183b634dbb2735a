// OnnxRuntime: the engine behind `backend: "onnxruntime"`, opened at run time.
//
// The library is not linked: septet works without it until a model asks for it. Found as the file
// or folder named by SEPTET_ONNXRUNTIME, beside the program, in the source tree's .deps (see
// scripts/setup), or by the system's loader. Wraps the ONNX Runtime API: its types stay in the .cc.
// Sessions run on the CPU; with one intra-op thread all instances of a version share one session,
// because each run then stays on its caller's thread.
#pragma once

#include <memory>
#include <string>

#include "serve/backend.h"

namespace septet::serve {

struct OnnxRuntimeOptions {
  int intra_op_threads = 1;    // a model's own parameters win
  std::string library_path{};  // empty = search as above
};

class OnnxRuntime : public Backend {
 public:
  explicit OnnxRuntime(OnnxRuntimeOptions options = {});
  ~OnnxRuntime() override;

  // Opens the library if that has not been done; kPrecondition says where it was looked for.
  // Called by load, and by whoever wants to know early.
  [[nodiscard]] Result<Ok> open();
  // "1.30.0" once open.
  const std::string& library_version() const { return version_; }

  std::string_view name() const override { return "onnxruntime"; }
  Result<std::unique_ptr<BackendModel>> load(const LoadArguments& arguments) override;

 private:
  struct Library;

  OnnxRuntimeOptions options_;
  std::unique_ptr<Library> library_;
  std::string version_;
};

}  // namespace septet::serve
