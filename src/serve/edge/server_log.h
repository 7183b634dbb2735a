// ServerLog: what the server says on stderr, and the settings that clients may read and change.
//
// Any thread may call it. A line is written in one piece. Levels can be switched off one by one, as
// the protocol's logging extension asks; the file cannot be changed from outside, because that
// would let a client write anywhere.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace septet::serve {

class ServerLog {
 public:
  std::atomic<bool> info_on{true};
  std::atomic<bool> warning_on{true};
  std::atomic<bool> error_on{true};
  std::atomic<unsigned> verbose_level{0};  // 1 = a line per request
  std::atomic<bool> iso8601{false};        // a time stamp in front

  void info(std::string_view text);
  void warning(std::string_view text);
  void error(std::string_view text);
  void verbose(std::string_view text);

 private:
  void write(std::string_view text);
};

}  // namespace septet::serve
