// Runs septet perf as a script does: words in, lines, files and exit codes out.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "integration/septet_run.h"

namespace septet::test {

class PerfTest : public testing::Test {
 protected:
  SeptetRun start(std::vector<std::string> words) {
    words.insert(words.begin(), {"perf", "-m", "simulated"});
    return SeptetRun(folder_, "perf" + std::to_string(++runs_), words);
  }
  // Runs to the end; the exit code. What it printed is in output_.
  int run(std::vector<std::string> words) {
    SeptetRun program = start(std::move(words));
    const std::optional<os::ExitStatus> status = program.wait(seconds(120));
    output_ = program.output();
    EXPECT_TRUE(status.has_value());
    return status ? status->code : -1;
  }

  std::string file(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> result;
    const std::string text = read_text(file(name));
    for (const std::string_view line : split(trim(text), '\n')) {
      result.emplace_back(line);
    }
    return result;
  }

  TestFolder folder_;
  int runs_ = 0;
  std::string output_;
};

}  // namespace septet::test
