#include "gpu/edge/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace septet::gpu {
namespace {

constexpr const char* kTrySimulation =
    "install or load the NVIDIA driver, or try septet --simulate A100-SXM4-40GB";

template <typename F>
void resolve(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& path) {
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(path));
  SEPTET_TRY(library->load());
  return library;
}

NvmlLibrary::~NvmlLibrary() {
  if (initialised_) {
    functions_.nvmlShutdown();
  }
  if (handle_ != nullptr) {
    ::dlclose(handle_);
  }
}

Result<Ok> NvmlLibrary::load() {
  handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* reason = ::dlerror();
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("cannot open the NVIDIA management library: {}",
                                  reason == nullptr ? path_ : reason),
                      kTrySimulation);
  }
  const char* missing = nullptr;
#define SEPTET_RESOLVE(name, parameters) resolve(handle_, #name, functions_.name);
  SEPTET_NVML_REQUIRED(SEPTET_RESOLVE)
  SEPTET_NVML_OPTIONAL(SEPTET_RESOLVE)
#undef SEPTET_RESOLVE
#define SEPTET_REQUIRE(name, parameters)                  \
  if (functions_.name == nullptr && missing == nullptr) { \
    missing = #name;                                      \
  }
  SEPTET_NVML_REQUIRED(SEPTET_REQUIRE)
#undef SEPTET_REQUIRE
  if (missing != nullptr) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("{} has no function {}: it is too old", path_, missing),
                      "update the NVIDIA driver");
  }
  const auto code = static_cast<NvmlCode>(functions_.nvmlInit_v2());
  if (code != NvmlCode::kSuccess) {
    Error error = nvml_error(code, "talk to the NVIDIA driver");
    error.hint = error.hint.empty() ? kTrySimulation : error.hint;
    return error;
  }
  initialised_ = true;
  return Ok{};
}

}  // namespace septet::gpu
