// What run and lease share: the words of a lease request, and how the daemon's answers are shown.
#pragma once

#include <string>

#include "base/result.h"
#include "lend/edge/lease_json.h"
#include "output.h"
#include "verb.h"

namespace septet::app {

struct LeaseWords {
  std::string slice;
  std::string time;
  std::string idle;
  std::string wait;
  std::string priority = "normal";
  std::string purpose;
  bool queue = false;
  bool preemptible = false;
};

void add_lease_options(CLI::App& verb, LeaseWords& words);
// Checked here, so that a typing mistake needs no daemon.
Result<lend::Json> request_json(const LeaseWords& words);

// "MIG-... (0:7, 1g.5gb)" of a lease's JSON; "-" while it holds nothing.
std::string partition_text(const lend::Json& lease);
// "in 3h 59m", "2m ago".
std::string relative_time(double seconds);

}  // namespace septet::app
