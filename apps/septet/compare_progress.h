// CompareProgress: what septet compare says on stderr while it measures.
//
// On a terminal one line that is written over, with the time left; elsewhere a line for each
// finished level. Owned by the verb, used by its thread.
#pragma once

#include <string>

#include "agent/edge/experiment.h"

namespace septet::app {

class CompareProgress {
 public:
  CompareProgress();
  // Ends the line that is written over.
  ~CompareProgress();
  CompareProgress(const CompareProgress&) = delete;
  CompareProgress& operator=(const CompareProgress&) = delete;

  void tell(const agent::ExperimentProgress& progress);
  // A line of its own.
  void say(const std::string& line);
  // A line that the next one replaces (on a terminal).
  void show(const std::string& line);

 private:
  bool terminal_ = false;
  bool open_ = false;  // the line on the terminal is not ended
};

}  // namespace septet::app
