// ReplicaSupervisor: decides when one replica's process is started, asked for its health, restarted
// with back-off, drained and stopped.
//
//                 start            healthy             ended, hung
//     stopped ------------> starting ------> ready ------------------+
//        ^                   ^   |             |                     |
//        |           time up |   | ended       | stop                |
//        |                   |   v             v                     |
//        |                 backing off <---  draining  (time up)     |
//        |                       ^             |                     |
//        |                       +-------------|---------------------+
//        +------------- stopping <-------------+
//              ended
//
// A state machine without I/O: step() takes what happened, take_commands() says what to do next,
// next_deadline() when to step again without news. Owned by whoever runs the process (agent/edge),
// used by one thread. Commands and events carry the number of the attempt, or of the probe, that
// they belong to, so an answer that comes late or twice changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"

namespace septet::agent {

enum class ReplicaState {
  kStopped,
  kStarting,    // the process runs but does not answer as ready yet
  kReady,       // gets requests
  kBackingOff,  // waits for its next start
  kDraining,    // gets no new requests, finishes what it has
  kStopping,    // was told to end
  kFailed,      // gave up: never became ready in the allowed number of starts
};

// The word shown to people and machines, e.g. "backing off".
const char* to_string(ReplicaState state);

struct SupervisorOptions {
  Duration start_timeout = seconds(120);                // from the process's start to ready
  Duration starting_probe_interval = milliseconds(50);  // between an answer and the next question
  Duration ready_probe_interval = seconds(1);
  Duration probe_timeout = seconds(10);  // a slice's share of a processor is slow
  unsigned failed_probes_allowed = 3;    // in a row, while ready; one more and it is replaced
  Duration first_back_off = milliseconds(200);  // doubles with each failure in a row
  Duration longest_back_off = seconds(10);
  Duration steady_after = seconds(30);  // ready for this long: the row of failures is forgotten
  Duration stop_grace = seconds(5);     // between asking it to end and killing it
  unsigned starts_allowed = 0;          // without ever being ready; 0 = without end
};

// What happened.
struct StartRequested {};
struct StopRequested {
  Duration drain = {};  // how long it may finish what it has; ends early with DrainFinished
};
struct DrainFinished {};
struct ProcessStarted {
  std::uint64_t attempt = 0;
};
struct ProcessStartFailed {
  std::uint64_t attempt = 0;
  std::string reason;
};
struct ProcessEnded {
  std::uint64_t attempt = 0;
  std::string how;
};
struct ProbeAnswered {
  std::uint64_t probe = 0;
  bool healthy = false;
};
struct TimePassed {};

using SupervisorEvent = std::variant<StartRequested, StopRequested, DrainFinished, ProcessStarted,
                                     ProcessStartFailed, ProcessEnded, ProbeAnswered, TimePassed>;

// What to do.
struct StartProcess {
  std::uint64_t attempt = 0;
  bool operator==(const StartProcess&) const = default;
};
struct Probe {  // asks once; the answer, also "no answer in time", comes as ProbeAnswered
  std::uint64_t probe = 0;
  Duration timeout{};
  bool operator==(const Probe&) const = default;
};
struct AskToEnd {  // SIGTERM
  std::uint64_t attempt = 0;
  bool operator==(const AskToEnd&) const = default;
};
struct Kill {
  std::uint64_t attempt = 0;
  bool operator==(const Kill&) const = default;
};
struct AnnounceReady {  // requests may be sent to it
  bool operator==(const AnnounceReady&) const = default;
};
struct AnnounceGone {  // no new requests
  bool operator==(const AnnounceGone&) const = default;
};

using SupervisorCommand =
    std::variant<StartProcess, Probe, AskToEnd, Kill, AnnounceReady, AnnounceGone>;

class ReplicaSupervisor {
 public:
  explicit ReplicaSupervisor(SupervisorOptions options) : options_(options) {}

  void step(Instant now, const SupervisorEvent& event);
  // What step() has decided, in order; each is handed out once.
  std::vector<SupervisorCommand> take_commands();
  // When to step with TimePassed if nothing happens before.
  std::optional<Instant> next_deadline() const;

  ReplicaState state() const { return state_; }
  // How often a process that had been ready ended, or was ended, without anyone asking for it.
  std::uint64_t restarts() const { return restarts_; }
  // Why it last failed; empty if it never did.
  const std::string& last_failure() const { return last_failure_; }

 private:
  void on(Instant now, const StartRequested&);
  void on(Instant now, const StopRequested& event);
  void on(Instant now, const DrainFinished&);
  void on(Instant now, const ProcessStarted& event);
  void on(Instant now, const ProcessStartFailed& event);
  void on(Instant now, const ProcessEnded& event);
  void on(Instant now, const ProbeAnswered& event);
  void on(Instant now, const TimePassed&);

  void start(Instant now);
  void probe();
  void ask_to_end(Instant now);
  void replace(Instant now, const std::string& why);
  void ended(Instant now);
  void failed(Instant now, const std::string& why);
  void enter(ReplicaState state, std::optional<Instant> deadline);
  bool has_process() const;
  Duration back_off() const;

  SupervisorOptions options_;
  ReplicaState state_ = ReplicaState::kStopped;
  std::optional<Instant> state_deadline_;  // when the state has lasted too long
  std::optional<Instant> probe_due_;       // when to ask for its health again
  std::vector<SupervisorCommand> commands_;

  bool wanted_ = false;        // the owner wants it to run
  std::uint64_t attempt_ = 0;  // of the newest StartProcess
  std::uint64_t probe_ = 0;    // number of the newest Probe
  bool was_ever_ready_ = false;
  unsigned failed_probes_ = 0;            // in a row
  unsigned failures_ = 0;                 // in a row, of the process
  std::optional<std::string> replacing_;  // stopping because of this, not because nobody wants it
  Instant ready_since_{};
  std::uint64_t restarts_ = 0;
  std::string last_failure_;
};

}  // namespace septet::agent
