#include "agent/isolation.h"

#include <fmt/format.h>

#include <algorithm>

namespace septet::agent {
namespace {

const char* opening(Sharing sharing) {
  switch (sharing) {
    case Sharing::kMig:
      return "With partitions";
    case Sharing::kTimeSlicing:
      return "With time-slicing on the undivided device";
    case Sharing::kStreams:
      return "With streams in one server";
  }
  return "";
}

std::uint64_t neighbours_lost(const IsolationOutcome& outcome) {
  std::uint64_t lost = 0;
  for (const ClientOutcome& client : outcome.clients) {
    lost += client.at_the_fault ? 0 : client.during.failed;
  }
  return lost;
}

// The worst change of p90 among the neighbours: during over before; 0 without a measurement.
double worst_p90_ratio(const IsolationOutcome& outcome) {
  double worst = 0;
  for (const ClientOutcome& client : outcome.clients) {
    if (!client.at_the_fault && client.before.p90_us > 0 && client.during.completed > 0) {
      worst = std::max(worst, client.during.p90_us / client.before.p90_us);
    }
  }
  return worst;
}

}  // namespace

std::size_t harmed_neighbours(const IsolationOutcome& outcome) {
  return static_cast<std::size_t>(
      std::count_if(outcome.clients.begin(), outcome.clients.end(), [](const ClientOutcome& c) {
        return !c.at_the_fault && (c.during.failed > 0 || c.during.completed == 0);
      }));
}

std::string isolation_verdict(const IsolationOutcome& outcome) {
  const auto neighbours = static_cast<std::size_t>(
      std::count_if(outcome.clients.begin(), outcome.clients.end(),
                    [](const ClientOutcome& client) { return !client.at_the_fault; }));
  std::string text = fmt::format("{}, one replica outgrew its memory", opening(outcome.sharing));
  if (outcome.out_of_memory_kills == 0) {
    return text + ", but nothing limited it: this says nothing about isolation.";
  }
  text += fmt::format(" and was ended {} time{}; ", outcome.out_of_memory_kills,
                      outcome.out_of_memory_kills == 1 ? "" : "s");
  const std::size_t harmed = harmed_neighbours(outcome);
  if (harmed == 0) {
    text += fmt::format("the other {} lost no request", neighbours);
  } else {
    text += fmt::format("{} of the other {} clients lost {} requests", harmed, neighbours,
                        neighbours_lost(outcome));
  }
  if (const double ratio = worst_p90_ratio(outcome); ratio > 0) {
    text += fmt::format(", and the worst p90 among them became {:.2f} times what it was", ratio);
  }
  return text + ".";
}

std::string isolation_text(const IsolationOutcome& outcome) {
  std::string text =
      fmt::format("{:<14} {:>22} {:>33}\n{:<14} {:>10} {:>11} {:>10} {:>10} {:>11}\n", "", "before",
                  "while one outgrows its memory", "replica", "infer/sec", "p90 ms", "infer/sec",
                  "p90 ms", "lost");
  for (const ClientOutcome& client : outcome.clients) {
    text += fmt::format("{:<14} {:>10.1f} {:>11.1f} {:>10.1f} {:>10.1f} {:>11}{}\n", client.replica,
                        client.before.throughput, client.before.p90_us / 1e3,
                        client.during.throughput, client.during.p90_us / 1e3, client.during.failed,
                        client.at_the_fault ? "  <- outgrows its memory" : "");
  }
  text += isolation_verdict(outcome) + "\n";
  if (outcome.slice_memory_mib > 0) {
    text += fmt::format("(The simulated GPU's memory was scaled so that a slice has {} MiB.)\n",
                        outcome.slice_memory_mib);
  }
  return text;
}

std::string isolation_csv_header() {
  return "technique,replica,at_the_fault,completed_before,failed_before,throughput_before,"
         "p90_before,completed_during,failed_during,throughput_during,p90_during,"
         "out_of_memory_kills,restarts,slice_memory_mib\n";
}

std::string isolation_csv_lines(const IsolationOutcome& outcome) {
  std::string text;
  for (const ClientOutcome& client : outcome.clients) {
    text += fmt::format("{},{},{},{},{},{:g},{:.0f},{},{},{:g},{:.0f},{},{},{}\n",
                        to_string(outcome.sharing), client.replica, client.at_the_fault ? 1 : 0,
                        client.before.completed, client.before.failed, client.before.throughput,
                        client.before.p90_us, client.during.completed, client.during.failed,
                        client.during.throughput, client.during.p90_us, outcome.out_of_memory_kills,
                        outcome.restarts, outcome.slice_memory_mib);
  }
  return text;
}

}  // namespace septet::agent
