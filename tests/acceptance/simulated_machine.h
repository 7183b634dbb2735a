// SimulatedMachine: a simulated node of its own, and foreign programs run on it.
//
// The node lives in a temporary folder and goes with the object. Programs see it through
// SEPTET_SIMNVML_STATE and LD_LIBRARY_PATH, exactly as `septet sim env` says.
#pragma once

#include <string>
#include <vector>

namespace septet::acceptance {

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr together
};

class SimulatedMachine {
 public:
  explicit SimulatedMachine(const std::string& node);
  ~SimulatedMachine();
  SimulatedMachine(const SimulatedMachine&) = delete;
  SimulatedMachine& operator=(const SimulatedMachine&) = delete;

  // Runs a shell command line with the node in its environment.
  Outcome run(const std::string& command) const;
  // septet with --simulate and these words.
  Outcome septet(const std::string& words) const;
  Outcome nvidia_smi(const std::string& words) const;
  // Writes a file into the machine's folder and returns its path.
  std::string write_file(const std::string& name, const std::string& text) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::string node_;
  std::string environment_;  // shell assignments in front of a command
};

// The path of nvidia-smi: $SEPTET_NVIDIA_SMI, the one that scripts/setup unpacked, or the system's.
// Empty when there is none.
std::string find_nvidia_smi();
// The path of a program: the one that scripts/setup unpacked, or an installed one; else empty.
std::string find_program(const std::string& name);
// The folder where scripts/setup unpacked a Debian package.
std::string unpacked(const std::string& package);
// Why foreign programs cannot load the library in this build; empty when they can.
std::string foreign_programs_barred();

std::vector<std::string> lines_of(const std::string& text);

}  // namespace septet::acceptance
