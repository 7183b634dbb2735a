#include "support/raw_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/check.h"
#include "inference/http1.h"

namespace septet::test {

namespace {

constexpr int kPatienceMs = 20'000;

}  // namespace

RawClient::RawClient(const os::Endpoint& endpoint) {
  Result<os::UniqueFd> fd = os::connect_to(endpoint, kPatienceMs);
  CHECK(fd.ok());
  fd_ = std::move(*fd);
}

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      pollfd waiting{fd_.get(), POLLOUT, 0};
      CHECK(poll(&waiting, 1, kPatienceMs) == 1);
      continue;
    }
    if (sent < 0) {
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RawClient::finish_sending() { shutdown(fd_.get(), SHUT_WR); }

bool RawClient::read_more() {
  pollfd waiting{fd_.get(), POLLIN, 0};
  CHECK(poll(&waiting, 1, kPatienceMs) == 1);
  std::array<char, 65536> buffer{};
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    return false;
  }
  in_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::reply() {
  inference::HttpHeadParser parser;
  inference::HttpHead head;
  inference::HeadResult result = parser.parse_response(in_, head);
  while (result.state == inference::HeadResult::State::kIncomplete) {
    if (!read_more()) {
      return std::exchange(in_, {});
    }
    result = parser.parse_response(in_, head);
  }
  std::size_t bytes = result.head_bytes;
  if (head.framing == inference::BodyFraming::kLength) {
    bytes += head.content_length;
    while (in_.size() < bytes && read_more()) {
    }
  } else if (head.framing == inference::BodyFraming::kChunked) {
    while (in_.find("0\r\n\r\n", result.head_bytes) == std::string::npos && read_more()) {
    }
    bytes = in_.find("0\r\n\r\n", result.head_bytes) + 5;
  }
  const std::string whole = in_.substr(0, bytes);
  in_.erase(0, bytes);
  return whole;
}

std::string RawClient::rest() {
  while (read_more()) {
  }
  return std::exchange(in_, {});
}

}  // namespace septet::test
