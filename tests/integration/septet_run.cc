#include "integration/septet_run.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "os/cgroup.h"
#include "os/clock.h"

namespace septet::test {
namespace {

namespace fs = std::filesystem;

os::Process start(const TestFolder& folder, const std::string& output,
                  const std::vector<std::string>& arguments) {
  os::ProcessOptions options;
  options.arguments = {SEPTET_PROGRAM};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.environment = {{"TMPDIR", folder.path()}, {"XDG_RUNTIME_DIR", folder.path()}};
  const os::UniqueFd file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  options.standard_output = file.get();
  options.standard_error = file.get();
  Result<os::Process> process = os::Process::start(options);
  CHECK(process.ok());
  return *std::move(process);
}

}  // namespace

TestFolder::TestFolder() {
  // Short: Unix socket paths in it are limited to 107 bytes.
  std::string name = "/tmp/septest_XXXXXX";
  CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::optional<std::string> cannot_serve(const std::string& model) {
  const fs::path root(SEPTET_SOURCE_DIR);
  if (!fs::exists(root / ".deps/onnxruntime/lib/libonnxruntime.so.1")) {
    return "there is no ONNX Runtime in .deps; scripts/setup brings it";
  }
  if (!fs::exists(root / "models" / model / "1/model.onnx")) {
    return "there is no model " + model + "; scripts/setup makes it";
  }
  return std::nullopt;
}

SeptetRun::SeptetRun(const TestFolder& folder, const std::string& name,
                     const std::vector<std::string>& arguments)
    : output_path_(folder / (name + ".out")), process_(start(folder, output_path_, arguments)) {}

std::string SeptetRun::output() const { return read_text(output_path_); }

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void pause_briefly() { poll(nullptr, 0, 5); }
Instant test_now() { return os::now(); }

std::vector<std::string> left_behind(const TestFolder& folder, pid_t pid) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = read_text(entry.path().string() + "/cmdline");
    if (command.find(folder.path()) != std::string::npos) {
      found.push_back("process " + entry.path().filename().string());
    }
  }
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with("septet.")) {
      found.push_back("folder " + entry.path().string());
    }
  }
  const Result<os::CgroupMounts> mounts = os::find_cgroups();
  const std::string owner = "." + std::to_string(pid) + ".";
  for (const std::string& parent : mounts.ok() ? mounts->folders : std::vector<std::string>{}) {
    for (const auto& entry : fs::directory_iterator(parent)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("septet.") && name.find(owner) != std::string::npos) {
        found.push_back("control group " + entry.path().string());
      }
    }
  }
  return found;
}

}  // namespace septet::test
