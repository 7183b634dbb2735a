// SeptetRun: the real program, run by a test, with a folder of its own for what it leaves.
//
// Owned by a test. TMPDIR of the program is a folder of the test, so that whatever it leaves behind
// can be told from what others leave.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "os/process.h"

namespace septet::test {

// A folder that is gone at the end of the test.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Why the program cannot run models here (no ONNX Runtime, no models), or nothing.
std::optional<std::string> cannot_serve(const std::string& model);

class SeptetRun {
 public:
  // Starts it; its output goes to a file of the folder.
  SeptetRun(const TestFolder& folder, const std::string& name,
            const std::vector<std::string>& arguments);

  os::Process& process() { return process_; }
  // Waits for the end.
  std::optional<os::ExitStatus> wait(Duration timeout) { return process_.wait(timeout); }
  // What it wrote to both streams so far.
  std::string output() const;

 private:
  std::string output_path_;
  os::Process process_;
};

// The file's text so far; empty when there is none.
std::string read_text(const std::string& path);

// Waits until the condition holds; false when it does not within the time.
template <typename Condition>
bool eventually(Duration timeout, Condition condition);
void pause_briefly();
Instant test_now();

// Processes, control groups and folders that the program with this pid, run in the folder, has
// left.
std::vector<std::string> left_behind(const TestFolder& folder, pid_t pid);

template <typename Condition>
bool eventually(Duration timeout, Condition condition) {
  const Instant deadline = test_now() + timeout;
  while (!condition()) {
    if (test_now() > deadline) {
      return false;
    }
    pause_briefly();
  }
  return true;
}

}  // namespace septet::test
