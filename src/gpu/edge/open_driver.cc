#include "gpu/edge/open_driver.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "gpu/edge/nvml_driver.h"
#include "gpu/edge/simulation_file.h"
#include "gpu/edge/simulation_store.h"
#include "gpu/simulated_node.h"

namespace septet::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateVariable = "SEPTET_SIMNVML_STATE";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// /tmp belongs to everybody: the folder must be ours, not a link that someone else left.
Result<Ok> own_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot create {}: {}", path, std::strerror(errno)),
                      "set SEPTET_SIM_ROOT to a folder of yours");
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return make_error(ErrorKind::kPermission, fmt::format("{} is not a folder of yours", path),
                      "set SEPTET_SIM_ROOT to a folder of yours");
  }
  return Ok{};
}

// A stable hash for folder names.
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

Result<std::string> simulation_root() {
  if (std::string root = variable("SEPTET_SIM_ROOT"); !root.empty()) {
    return root;
  }
  if (const std::string runtime = variable("XDG_RUNTIME_DIR"); !runtime.empty()) {
    return runtime + "/septet/sim";
  }
  const std::string folder = fmt::format("/tmp/septet-{}", ::geteuid());
  SEPTET_TRY(own_private_folder(folder));
  return folder + "/sim";
}

}  // namespace

Result<SimulatedNode> specified_node(const std::string& specification) {
  if (!is_simulation_file(specification)) {
    return make_simulated_node(specification);
  }
  auto node = read_node_file(specification);
  if (node.ok()) {
    // Two files of one name in different folders are two nodes.
    std::error_code ignored;
    const fs::path path = fs::weakly_canonical(specification, ignored);
    node->config.name =
        fmt::format("{}-{:08x}", path.stem().string(), fnv1a(path.string()) & 0xFFFFFFFF);
  }
  return node;
}

Result<std::string> simulation_directory(const std::string& specification) {
  const auto node = specified_node(specification);
  if (!node.ok()) {
    return node.error();
  }
  auto root = simulation_root();
  if (!root.ok()) {
    return root.error();
  }
  return *root + "/" + node->config.name;
}

Result<std::string> ensure_simulation(const std::string& specification) {
  const auto directory = simulation_directory(specification);
  if (!directory.ok()) {
    return directory.error();
  }
  const SimulationStore store(*directory);
  if (!store.exists()) {
    const auto node = specified_node(specification);
    if (!node.ok()) {
      return node.error();
    }
    const auto created = store.create(*node);
    // Another process may have been quicker; then its node is as good.
    if (!created.ok() && created.error().kind != ErrorKind::kPrecondition) {
      return created.error();
    }
  }
  return directory;
}

Result<std::string> simulated_library() {
  if (std::string path = variable("SEPTET_SIMNVML_LIBRARY"); !path.empty()) {
    return path;
  }
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path library =
      self.parent_path().parent_path() / "lib" / "simnvml" / "libnvidia-ml.so.1";
  if (error || !fs::exists(library)) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("the simulated GPU's library is not at {}", library.string()),
                      "build the target simnvml, or name it in SEPTET_SIMNVML_LIBRARY");
  }
  return library.string();
}

Result<std::unique_ptr<GpuDriver>> open_driver(const std::string& simulate) {
  if (simulate.empty()) {
    return NvmlDriver::open("libnvidia-ml.so.1");
  }
  const auto directory = ensure_simulation(simulate);
  if (!directory.ok()) {
    return directory.error();
  }
  const auto library = simulated_library();
  if (!library.ok()) {
    return library.error();
  }
  ::setenv(kStateVariable, directory->c_str(), 1);
  return NvmlDriver::open(*library);
}

}  // namespace septet::gpu
