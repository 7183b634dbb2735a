// AccessLog: one line of JSON for one request in so many.
//
// Owned by the Reactor, used by its thread. Lines gather in memory and are written a few times a
// second, so a request costs no system call; what does not fit is counted and said.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "os/unique_fd.h"

namespace septet::balance {

class AccessLog {
 public:
  struct Entry {
    std::string_view protocol;  // "http", "grpc"
    std::string_view method;    // empty: the target says all
    std::string_view target;
    unsigned status = 0;     // HTTP's, or the class of gRPC's
    Duration took{};         // from the request's last byte to the reply's first
    std::string_view hedge;  // "won": a second copy was answered first; "lost": it was not
    std::string_view request_id;
    std::string_view traceparent;
  };

  AccessLog() = default;
  ~AccessLog() { flush(); }
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // Appends to the file, "-" = standard error. every: 1 = all requests.
  Result<Ok> open(const std::string& path, std::uint64_t every);
  // Whether the next request is one to be written; counts it.
  bool wants_next() { return fd_ >= 0 && seen_++ % every_ == 0; }
  void add(const Entry& entry);
  void flush();

 private:
  os::UniqueFd file_;
  int fd_ = -1;
  std::uint64_t every_ = 1;
  std::uint64_t seen_ = 0;
  std::uint64_t lost_ = 0;
  std::string lines_;  // memory kept
};

}  // namespace septet::balance
