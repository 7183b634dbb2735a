// LeaseClient: asks the lease daemon, one blocking call at a time.
//
// Owned by a verb, one thread. call() makes a connection of its own each time; a stream keeps its
// connection, which for an attached lease is the hold on it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "inference/http1.h"
#include "lend/edge/lease_json.h"
#include "os/unique_fd.h"

namespace septet::agent {

// Where the daemon listens: $SEPTET_SOCKET, else the system's socket if it is there, else this
// user's own.
std::string lease_socket_path();
// Where a daemon of this user listens and keeps its ledger when it is not told otherwise.
struct DaemonPaths {
  std::string socket;
  std::string ledger;
};
DaemonPaths default_daemon_paths();

// Lines of news from the daemon.
class NewsStream {
 public:
  NewsStream(os::UniqueFd fd, std::string received)
      : fd_(std::move(fd)), received_(std::move(received)) {}

  int fd() const { return fd_.get(); }
  // The next line if one is complete; reads what is there without waiting.
  Result<std::optional<lend::Json>> poll();
  // Waits for the next line; nothing when the stream has ended.
  Result<std::optional<lend::Json>> next(Duration timeout);
  bool ended() const { return ended_; }

 private:
  std::optional<std::string> take_line();
  bool receive();

  os::UniqueFd fd_;
  std::string received_;  // undecoded
  std::string text_;      // decoded, not yet taken
  inference::ChunkedDecoder decoder_;
  bool ended_ = false;
};

class LeaseClient {
 public:
  explicit LeaseClient(std::string socket) : socket_(std::move(socket)) {}

  // The answer's JSON; the daemon's error as an Error. kPrecondition when no daemon answers.
  Result<lend::Json> call(const std::string& method, const std::string& path,
                          const lend::Json& body = {});
  // A stream of news; an error that comes instead of it is the Result's.
  Result<std::unique_ptr<NewsStream>> stream(const std::string& path, const lend::Json& body);

  const std::string& socket() const { return socket_; }

 private:
  struct Answer {
    unsigned status = 0;
    bool is_stream = false;
    std::string rest;  // bytes behind the head
    std::uint64_t content_length = 0;
  };
  Result<os::UniqueFd> send_request(const std::string& method, const std::string& path,
                                    const lend::Json& body);
  Result<Answer> read_head(int fd);
  Result<lend::Json> read_body(int fd, Answer& answer);

  std::string socket_;
};

}  // namespace septet::agent
