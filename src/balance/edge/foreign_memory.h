// ForeignMemory: whether one replica that is not septet's reads bodies in the proxy's named region
// of shared memory, and what is done so that it does (the protocol's system shared memory
// extension).
//
//              announces the extension          registered
//   kUnknown ---------------------> kAnnounced ------------> kRegistered
//                                       |   ^ lost()              |
//                            no region, |   +---------------------+
//                            refused    v
//                                    kRefused     (until the replica is probed anew)
//
// Owned by Replica, used by the reactor's thread. Asks by the replica's side channel.
#pragma once

#include <string>
#include <string_view>

namespace septet::balance {

class Reactor;
class Replica;
class SideChannel;

class ForeignMemory {
 public:
  ForeignMemory(Reactor& reactor, const Replica& replica, SideChannel& side)
      : reactor_(reactor), replica_(replica), side_(side) {}

  // The replica has come up: begins from the start.
  void replica_is_up();
  // It takes slots as septet's do, so it needs none of this.
  void not_needed() { state_ = State::kUnknown; }
  // It would read a named region, if there is one.
  bool wants_region() const { return state_ != State::kUnknown && state_ != State::kRefused; }
  bool registered() const { return state_ == State::kRegistered; }
  // A request whose body lay in the region was answered.
  void worked() { losses_ = 0; }
  // One was refused because of the region: the replica was started anew, or a client has
  // unregistered everything.
  void lost();

 private:
  enum class State { kUnknown, kAsking, kAnnounced, kRegistered, kRefused };
  // So many refusals with no success between them mean that it never works.
  static constexpr int kMostLosses = 8;

  void enroll();
  void refused(std::string_view why);

  Reactor& reactor_;
  const Replica& replica_;
  SideChannel& side_;
  State state_ = State::kUnknown;
  int losses_ = 0;
  bool complained_ = false;
};

// Whether the JSON of GET /v2 lists the extension.
bool announces_shared_memory(std::string_view server_metadata);

// The answer to a question about registered regions without the proxy's own: who knows a region's
// name could read what lies there.
std::string without_own_regions(std::string_view status_json);

}  // namespace septet::balance
