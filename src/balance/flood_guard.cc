#include "balance/flood_guard.h"

#include <algorithm>

namespace septet::balance {

namespace {

// What a frame costs; a call's own frames are paid back when it ends.
double cost(Http2Frame frame) {
  switch (frame) {
    case Http2Frame::kData:
      return 0.02;  // twenty bytes pay for it: dribbled byte by byte, data is a flood too
    case Http2Frame::kHead:
      return 0.5;
    case Http2Frame::kContinuation:
      return 50;  // a head of an honest client rarely needs one; twenty in a row are an attack
    case Http2Frame::kEmptyData:
    case Http2Frame::kReset:
    case Http2Frame::kOther:
      return 1;
    case Http2Frame::kPing:
      return 2;
    case Http2Frame::kSettings:
      return 20;
  }
  return 1;
}

}  // namespace

bool FloodGuard::admit(Instant now, Http2Frame frame, std::size_t bytes) {
  earn(to_seconds(now - refilled_) * kTokensPerSecond);
  refilled_ = now;
  if (frame == Http2Frame::kData) {
    data_sent(bytes);
  }
  tokens_ -= cost(frame);
  return tokens_ >= 0;
}

// A head, the mark of its end, and a window update or two for the reply.
void FloodGuard::call_ended() { earn(4); }

void FloodGuard::data_sent(std::size_t bytes) {
  constexpr double kBytesPerToken = 1024;
  earn(static_cast<double>(bytes) / kBytesPerToken);
}

void FloodGuard::earn(double tokens) { tokens_ = std::min(kMostTokens, tokens_ + tokens); }

}  // namespace septet::balance
