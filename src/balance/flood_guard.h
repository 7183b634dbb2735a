// FloodGuard: tells an HTTP/2 peer that works from one that makes work.
//
// A token bucket per connection: frames that carry no data cost tokens, data gives them back, and
// time refills the bucket. Against rapid reset (CVE-2023-44487), floods of SETTINGS, PING, empty
// DATA or priorities (CVE-2019-9512 to 9518), and endless CONTINUATION (CVE-2024-27316). A value;
// owned by one connection.
#pragma once

#include <cstddef>

#include "base/time.h"

namespace septet::balance {

enum class Http2Frame { kData, kEmptyData, kHead, kContinuation, kReset, kSettings, kPing, kOther };

class FloodGuard {
 public:
  explicit FloodGuard(Instant now) : refilled_(now) {}

  // False: the connection is to be closed. bytes: of the frame's payload.
  bool admit(Instant now, Http2Frame frame, std::size_t bytes);
  // A call was answered: what opened it has been of use.
  void call_ended();
  // So much of a reply went out, for which the peer has to open windows.
  void data_sent(std::size_t bytes);

 private:
  // A client may cancel a thousand calls at once; then two hundred a second.
  static constexpr double kMostTokens = 1000;
  static constexpr double kTokensPerSecond = 200;

  void earn(double tokens);

  double tokens_ = kMostTokens;
  Instant refilled_;
};

}  // namespace septet::balance
