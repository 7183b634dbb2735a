// Isolation: what happens to the neighbours when one replica outgrows its memory.
//
// Every replica has a client of its own, so a failure hits the client of the replica that failed
// and cannot be covered up by a balancer. Each client measures a time before the fault and a time
// in which the first replica's memory grows without end. Pure: measurements in, words out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/experiment_plan.h"

namespace septet::agent {

struct ClientMeasurement {
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  double throughput = 0;  // inferences per second
  double p90_us = 0;
};

struct ClientOutcome {
  std::string replica;        // that it sends to
  bool at_the_fault = false;  // that replica's memory grows
  ClientMeasurement before;
  ClientMeasurement during;
};

struct IsolationOutcome {
  Sharing sharing = Sharing::kMig;
  std::int64_t slice_memory_mib = 0;  // that the simulated GPU's smallest slice was given
  std::vector<ClientOutcome> clients;
  std::uint64_t out_of_memory_kills = 0;
  std::uint64_t restarts = 0;  // of all replicas
};

// Clients of other replicas that lost a request while the fault was there.
std::size_t harmed_neighbours(const IsolationOutcome& outcome);

// One sentence: "With partitions, one replica ran out of memory ... the other 6 lost no request".
std::string isolation_verdict(const IsolationOutcome& outcome);

// A table for a terminal, with the verdict below.
std::string isolation_text(const IsolationOutcome& outcome);

// isolation.csv: a line for each client. Latencies in whole microseconds.
std::string isolation_csv_header();
std::string isolation_csv_lines(const IsolationOutcome& outcome);

}  // namespace septet::agent
