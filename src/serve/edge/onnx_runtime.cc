#include "serve/edge/onnx_runtime.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "serve/edge/onnx_session.h"

namespace septet::serve {

namespace {

namespace fs = std::filesystem;
constexpr const char* kLibraryName = "libonnxruntime.so.1";

// Where the library may lie, best first; the last entry leaves it to the system's loader.
std::vector<std::string> candidates(const std::string& given) {
  std::vector<std::string> paths;
  const auto add = [&](const fs::path& path) {
    std::error_code failed;
    paths.push_back(fs::is_directory(path, failed) ? (path / kLibraryName).string()
                                                   : path.string());
  };
  if (!given.empty()) {
    add(given);
    return paths;
  }
  if (const char* named = std::getenv("SEPTET_ONNXRUNTIME"); named != nullptr && *named != '\0') {
    add(named);
    return paths;
  }
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    add(program.parent_path() / kLibraryName);
    add(program.parent_path().parent_path() / "lib" / kLibraryName);
  }
  add(fs::path(SEPTET_SOURCE_DIR) / ".deps" / "onnxruntime" / "lib" / kLibraryName);
  paths.emplace_back(kLibraryName);
  return paths;
}

}  // namespace

struct OnnxRuntime::Library {
  std::shared_ptr<OnnxEngine> engine;
};

OnnxRuntime::OnnxRuntime(OnnxRuntimeOptions options) : options_(std::move(options)) {}
OnnxRuntime::~OnnxRuntime() = default;

Result<Ok> OnnxRuntime::open() {
  if (library_) {
    return Ok{};
  }
  std::string tried;
  for (const std::string& path : candidates(options_.library_path)) {
    // Never closed: the engine's threads and thread-local data outlive any order of destruction.
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried += fmt::format("{}{}", tried.empty() ? "" : ", ", path);
      continue;
    }
    auto engine = OnnxEngine::start(::dlsym(handle, "OrtGetApiBase"));
    if (!engine.ok()) {
      return make_error(engine.error().kind,
                        fmt::format("cannot use {}: {}", path, engine.error().message),
                        engine.error().hint);
    }
    library_ = std::make_unique<Library>(Library{std::move(*engine)});
    version_ = library_->engine->version();
    return Ok{};
  }
  return make_error(ErrorKind::kPrecondition,
                    fmt::format("cannot open ONNX Runtime; tried {}", tried),
                    "run scripts/setup, or name the library's file with SEPTET_ONNXRUNTIME");
}

Result<std::unique_ptr<BackendModel>> OnnxRuntime::load(const LoadArguments& arguments) {
  SEPTET_TRY(open());
  const std::string& file = arguments.config->default_model_filename;
  const std::string path =
      fmt::format("{}/{}", arguments.version_folder, file.empty() ? "model.onnx" : file);
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) {
    return make_error(ErrorKind::kNotFound, fmt::format("there is no model file {}", path),
                      "put it there, or name it with default_model_filename");
  }
  return library_->engine->load(path, *arguments.config, options_.intra_op_threads);
}

}  // namespace septet::serve
