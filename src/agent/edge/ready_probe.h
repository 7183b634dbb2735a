// ReadyProbe: asks a replica once, over HTTP, whether it is ready.
//
// Owned by the caller and used by the loop's thread; destroying it withdraws the question. Ready
// means: an answer with status 200 to GET of the target, before the time is up.
#pragma once

#include <functional>
#include <string>

#include "base/time.h"
#include "inference/http1.h"
#include "os/endpoint.h"
#include "os/event_loop.h"

namespace septet::agent {

class ReadyProbe : os::EventLoop::Watcher {
 public:
  // Calls back once, from the loop; the callback may destroy the probe.
  ReadyProbe(os::EventLoop& loop, const os::Endpoint& endpoint, const std::string& target,
             Duration timeout, std::function<void(bool ready)> on_answer);
  ~ReadyProbe() override;
  ReadyProbe(const ReadyProbe&) = delete;
  ReadyProbe& operator=(const ReadyProbe&) = delete;

 private:
  void on_ready(std::uint32_t events) override;
  void send_rest();
  void receive();
  void finish(bool ready);

  os::EventLoop& loop_;
  std::function<void(bool)> on_answer_;
  os::EventLoop::Timer timer_;
  os::UniqueFd socket_;
  bool connected_ = false;
  std::string unsent_;
  std::string received_;
  inference::HttpHeadParser parser_;
};

}  // namespace septet::agent
