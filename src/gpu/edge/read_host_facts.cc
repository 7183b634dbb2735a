#include "gpu/edge/read_host_facts.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "os/cgroup.h"

namespace septet::gpu {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<bool> may_open(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) {
    return std::nullopt;
  }
  return ::access(path.c_str(), R_OK | W_OK) == 0;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat ..." -> "535.161.08".
std::string version_in(const std::string& text) {
  for (const std::string_view word : split(text, ' ')) {
    if (word.size() > 3 && word.find('.') != std::string_view::npos &&
        word.find_first_not_of("0123456789.") == std::string_view::npos) {
      return std::string(word);
    }
  }
  return "";
}

}  // namespace

HostFacts read_host_facts() {
  const char* root = std::getenv("SEPTET_SYSROOT");
  const std::string base = root == nullptr ? "" : root;
  HostFacts facts;
  facts.is_root = ::geteuid() == 0;
  const std::string modules = "\n" + text_of(base + "/proc/modules");
  facts.nvidia_module = modules.find("\nnvidia ") != std::string::npos;
  facts.nouveau_module = modules.find("\nnouveau ") != std::string::npos;
  facts.kernel_driver = version_in(text_of(base + "/proc/driver/nvidia/version"));
  facts.may_open_gpu = may_open(base + "/dev/nvidiactl");
  facts.may_configure_mig = may_open(base + "/dev/nvidia-caps/nvidia-cap1");
  if (const auto groups = os::find_cgroups(); !groups.ok()) {
    facts.no_slice_limits = groups.error().message;
  }
  return facts;
}

}  // namespace septet::gpu
