#include "agent/edge/lease_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "agent/edge/error_json.h"
#include "os/clock.h"
#include "os/endpoint.h"

namespace septet::agent {

using lend::Json;

namespace {

constexpr int kConnectTimeoutMs = 5000;
// A grant may wait for a sharing daemon to start or a layout to change.
constexpr Duration kAnswerTimeout = seconds(120);
constexpr const char* kSystemSocket = "/run/septet/lend.sock";
constexpr const char* kSystemLedger = "/var/lib/septet/ledger.sqlite";

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::string(value);
}

Error gone(const std::string& socket, const std::string& why) {
  return make_error(ErrorKind::kPrecondition,
                    fmt::format("the lease daemon at {} does not answer: {}", socket, why),
                    "start it with septet lend-daemon, or name its socket with SEPTET_SOCKET");
}

// Waits until the descriptor is readable; false when the time is over.
bool wait_readable(int fd, Instant deadline) {
  const Duration left = deadline - os::now();
  pollfd entry{fd, POLLIN, 0};
  return left > Duration::zero() &&
         ::poll(&entry, 1, static_cast<int>(left / milliseconds(1)) + 1) > 0;
}

}  // namespace

DaemonPaths default_daemon_paths() {
  if (geteuid() == 0) {
    return {variable_or("SEPTET_SOCKET", kSystemSocket), kSystemLedger};
  }
  const std::string own = fmt::format("/tmp/septet-{}", geteuid());
  const std::string runtime = variable_or("XDG_RUNTIME_DIR", own);
  const std::string state =
      variable_or("XDG_STATE_HOME", variable_or("HOME", own) + "/.local/state");
  return {variable_or("SEPTET_SOCKET", runtime + "/septet/lend.sock"),
          state + "/septet/ledger.sqlite"};
}

std::string lease_socket_path() {
  const std::string stated = variable_or("SEPTET_SOCKET", "");
  if (!stated.empty()) {
    return stated;
  }
  return access(kSystemSocket, F_OK) == 0 ? kSystemSocket : default_daemon_paths().socket;
}

bool NewsStream::receive() {
  std::array<char, 8192> buffer{};
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return false;
  }
  if (got <= 0) {
    ended_ = true;
    return false;
  }
  received_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> NewsStream::take_line() {
  std::size_t used = 0;
  while (used < received_.size() && !ended_) {
    const auto step = decoder_.feed(std::string_view(received_).substr(used));
    text_ += step.data;
    used += step.consumed;
    ended_ = step.done || step.bad;
    if (step.consumed == 0) {
      break;
    }
  }
  received_.erase(0, used);
  const std::size_t end = text_.find('\n');
  if (end == std::string::npos) {
    return std::nullopt;
  }
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

Result<std::optional<Json>> NewsStream::poll() {
  for (;;) {
    if (const std::optional<std::string> line = take_line()) {
      Result<Json> json = lend::parse_json(*line);
      SEPTET_TRY(json);
      return std::optional<Json>(*std::move(json));
    }
    if (ended_ || !receive()) {
      return std::optional<Json>();
    }
  }
}

Result<std::optional<Json>> NewsStream::next(Duration timeout) {
  const Instant deadline = os::now() + timeout;
  for (;;) {
    Result<std::optional<Json>> line = poll();
    if (!line.ok() || line->has_value() || ended_) {
      return line;
    }
    if (!wait_readable(fd_.get(), deadline)) {
      return make_error(
          ErrorKind::kFailed,
          fmt::format("the lease daemon said nothing for {:.0f} s", to_seconds(timeout)));
    }
  }
}

Result<os::UniqueFd> LeaseClient::send_request(const std::string& method, const std::string& path,
                                               const Json& body) {
  os::Endpoint endpoint;
  endpoint.unix_path = socket_;
  Result<os::UniqueFd> fd = os::connect_to(endpoint, kConnectTimeoutMs);
  if (!fd.ok()) {
    return gone(socket_, fd.error().message);
  }
  const std::string text = body.is_null() ? std::string() : body.dump();
  std::string message = fmt::format("{} {} HTTP/1.1\r\nHost: septet\r\n", method, path);
  inference::append_field(message, "Content-Length", std::uint64_t{text.size()});
  message += "\r\n" + text;
  const Instant deadline = os::now() + milliseconds(kConnectTimeoutMs);
  for (std::size_t sent = 0; sent < message.size();) {
    const ssize_t count =
        send(fd->get(), message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if ((errno != EAGAIN && errno != EINTR) || os::now() > deadline) {
      return gone(socket_, std::strerror(errno));
    } else {
      pollfd entry{fd->get(), POLLOUT, 0};
      ::poll(&entry, 1, 100);
    }
  }
  return fd;
}

Result<LeaseClient::Answer> LeaseClient::read_head(int fd) {
  Answer answer;
  inference::HttpHeadParser parser;
  inference::HttpHead head;
  const Instant deadline = os::now() + kAnswerTimeout;
  for (;;) {
    const inference::HeadResult result = parser.parse_response(answer.rest, head);
    if (result.state == inference::HeadResult::State::kRefused) {
      return gone(socket_, "it does not speak HTTP: " + result.reason);
    }
    if (result.state == inference::HeadResult::State::kComplete) {
      answer.status = head.status;
      answer.is_stream = head.framing == inference::BodyFraming::kChunked;
      answer.content_length = head.content_length;
      answer.rest.erase(0, result.head_bytes);
      return answer;
    }
    std::array<char, 8192> buffer{};
    if (!wait_readable(fd, deadline)) {
      return gone(socket_, "no answer in time");
    }
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got == 0) {
      return gone(socket_, "it closed the connection");
    }
    if (got > 0) {
      answer.rest.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EAGAIN && errno != EINTR) {
      return gone(socket_, std::strerror(errno));
    }
  }
}

Result<Json> LeaseClient::read_body(int fd, Answer& answer) {
  const Instant deadline = os::now() + kAnswerTimeout;
  while (answer.rest.size() < answer.content_length) {
    std::array<char, 65536> buffer{};
    if (!wait_readable(fd, deadline)) {
      return gone(socket_, "its answer is not complete");
    }
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got > 0) {
      answer.rest.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return gone(socket_, "its answer is not complete");
    }
  }
  return lend::parse_json(answer.rest.substr(0, static_cast<std::size_t>(answer.content_length)));
}

Result<Json> LeaseClient::call(const std::string& method, const std::string& path,
                               const Json& body) {
  const Result<os::UniqueFd> fd = send_request(method, path, body);
  SEPTET_TRY(fd);
  Result<Answer> answer = read_head(fd->get());
  SEPTET_TRY(answer);
  Result<Json> json = read_body(fd->get(), *answer);
  SEPTET_TRY(json);
  if (answer->status >= 300) {
    return error_from_json(*json);
  }
  return json;
}

Result<std::unique_ptr<NewsStream>> LeaseClient::stream(const std::string& path, const Json& body) {
  Result<os::UniqueFd> fd = send_request("POST", path, body);
  SEPTET_TRY(fd);
  Result<Answer> answer = read_head(fd->get());
  SEPTET_TRY(answer);
  if (!answer->is_stream) {
    const Result<Json> json = read_body(fd->get(), *answer);
    SEPTET_TRY(json);
    return error_from_json(*json);
  }
  return std::make_unique<NewsStream>(*std::move(fd), std::move(answer->rest));
}

}  // namespace septet::agent
