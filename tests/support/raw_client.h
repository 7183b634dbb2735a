// RawClient: a blocking client that sends exactly the bytes it is told to.
#pragma once

#include <string>
#include <string_view>

#include "os/endpoint.h"

namespace septet::test {

class RawClient {
 public:
  // Aborts the test program when it cannot connect.
  explicit RawClient(const os::Endpoint& endpoint);

  // Sends all of it, or as much as the peer takes before it closes.
  void send(std::string_view bytes);
  // Says that nothing more will be sent.
  void finish_sending();
  // One reply: head and body by Content-Length, or chunks to their end; less if the peer closed.
  std::string reply();
  // Everything until the peer closes.
  std::string rest();
  // Whether the peer closes (waits for it).
  bool closed() { return rest().empty(); }

 private:
  bool read_more();

  os::UniqueFd fd_;
  std::string in_;
};

}  // namespace septet::test
