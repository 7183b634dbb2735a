#include "simulated_machine.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/check.h"
#include "base/text.h"

namespace septet::acceptance {
namespace {

namespace fs = std::filesystem;

// A library built with the address sanitizer needs the sanitizer loaded before the foreign program.
std::string preload() {
  if (std::string_view(SEPTET_SANITIZER).find("address") == std::string_view::npos) {
    return "";
  }
  return "export ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$(gcc -print-file-name=libasan.so); ";
}

}  // namespace

SimulatedMachine::SimulatedMachine(const std::string& node) : node_(node) {
  std::string pattern = (fs::temp_directory_path() / "septet-acceptance-XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
  environment_ = fmt::format("export SEPTET_SIM_ROOT='{}/sim'; eval \"$({} sim env '{}')\"; ",
                             folder_, SEPTET_PROGRAM, node_);
}

SimulatedMachine::~SimulatedMachine() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Outcome SimulatedMachine::run(const std::string& command) const {
  Outcome outcome;
  const std::string line = environment_ + "{ " + preload() + command + "; } 2>&1";
  FILE* const pipe = ::popen(line.c_str(), "r");
  CHECK(pipe != nullptr);
  std::array<char, 4096> buffer;
  std::size_t count = 0;
  while ((count = ::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    outcome.output.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

Outcome SimulatedMachine::septet(const std::string& words) const {
  return run(fmt::format("{} --simulate '{}' {}", SEPTET_PROGRAM, node_, words));
}

Outcome SimulatedMachine::nvidia_smi(const std::string& words) const {
  return run(find_nvidia_smi() + " " + words);
}

std::string SimulatedMachine::write_file(const std::string& name, const std::string& text) const {
  std::string path = folder_ + "/" + name;
  std::ofstream(path) << text;
  return path;
}

std::string unpacked(const std::string& package) { return SEPTET_SOURCE_DIR "/.deps/" + package; }

std::string find_program(const std::string& name) {
  const std::string ours = unpacked(name) + "/usr/bin/" + name;
  if (::access(ours.c_str(), X_OK) == 0) {
    return ours;
  }
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    const std::string candidate = std::string(folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return "";
}

std::string find_nvidia_smi() {
  if (const char* named = std::getenv("SEPTET_NVIDIA_SMI"); named != nullptr) {
    return named;
  }
  const std::string ours = unpacked("nvidia-smi") + "/usr/lib/nvidia/current/nvidia-smi";
  return ::access(ours.c_str(), X_OK) == 0 ? ours : find_program("nvidia-smi");
}

std::string foreign_programs_barred() {
  return std::string_view(SEPTET_SANITIZER).find("thread") == std::string_view::npos
             ? ""
             : "a program without the thread sanitizer cannot load a library with it";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) {
      lines.emplace_back(line);
    }
  }
  return lines;
}

}  // namespace septet::acceptance
