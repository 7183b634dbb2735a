#include "balance/edge/control_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>

#include "inference/http1.h"
#include "os/clock.h"

namespace septet::balance {

using inference::BodyFraming;
using HeadState = inference::HeadResult::State;

namespace {

constexpr Duration kLongest = seconds(5);
constexpr std::size_t kMaxBodyBytes = 1U << 20U;
constexpr mode_t kForOthers = 0177;  // what they may not: a Unix socket is its owner's
constexpr std::string_view kTarget = "/septet/upstreams";

bool is_loopback(const os::Endpoint& endpoint) {
  return endpoint.is_unix() || endpoint.host == "localhost" || endpoint.host == "::1" ||
         endpoint.host.starts_with("127.");
}

struct Answer {
  unsigned status = 200;
  std::string body;
};

Answer refusal(const Error& error) {
  const unsigned status = error.kind == ErrorKind::kUsage      ? 400
                          : error.kind == ErrorKind::kNotFound ? 404
                                                               : 500;
  return {status, nlohmann::ordered_json({{"error", error.text()}}).dump()};
}

Answer answer(UpstreamKeeper& keeper, std::string_view method, std::string_view target,
              std::string_view body) {
  if (target != kTarget) {
    return refusal(make_error(ErrorKind::kNotFound, "there is nothing here",
                              fmt::format("the replicas are at {}", kTarget)));
  }
  if (method != "GET") {
    const Result<UpstreamChange> change = parse_upstream_change(method, body);
    const Result<Ok> changed = change.ok() ? keeper.change(*change) : change.error();
    if (!changed.ok()) {
      return refusal(changed.error());
    }
  }
  return {200, keeper.json()};
}

// Waits for the events until the deadline; false when it has come first.
bool wait_until(int fd, short events, Instant deadline) {
  const Duration left = deadline - os::now();
  pollfd entry{fd, events, 0};
  return left > Duration::zero() &&
         ::poll(&entry, 1, static_cast<int>(to_seconds(left) * 1000) + 1) > 0;
}

// More of what the client says; false: it is gone or too slow.
bool read_more(int client, std::string& in, Instant deadline) {
  std::array<char, 4096> bytes{};
  const ssize_t got =
      wait_until(client, POLLIN, deadline) ? ::recv(client, bytes.data(), bytes.size(), 0) : 0;
  in.append(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return got > 0;
}

void send_all(int client, std::string_view bytes, Instant deadline) {
  while (!bytes.empty() && wait_until(client, POLLOUT, deadline)) {
    const ssize_t sent = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      return;
    }
    bytes.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
  }
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::start(const os::Endpoint& endpoint,
                                                            UpstreamKeeper& keeper) {
  if (!is_loopback(endpoint)) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("--control {} could be reached from other machines, and whoever "
                                  "reaches it may change the replicas",
                                  endpoint.text()),
                      "write --control unix:/PATH or 127.0.0.1:PORT");
  }
  const mode_t before = ::umask(kForOthers);
  Result<os::UniqueFd> listener = os::listen_on(endpoint);
  ::umask(before);
  if (!listener.ok()) {
    return listener.error();
  }
  os::UniqueFd leave(::eventfd(0, EFD_CLOEXEC));
  const os::Endpoint real = endpoint.is_unix() ? endpoint : os::local_endpoint(listener->get());
  return std::unique_ptr<ControlServer>(
      new ControlServer(real, *std::move(listener), std::move(leave), keeper));
}

ControlServer::ControlServer(os::Endpoint endpoint, os::UniqueFd listener, os::UniqueFd leave,
                             UpstreamKeeper& keeper)
    : endpoint_(std::move(endpoint)),
      listener_(std::move(listener)),
      leave_(std::move(leave)),
      keeper_(keeper),
      thread_([this] { run(); }) {}

ControlServer::~ControlServer() {
  ::eventfd_write(leave_.get(), 1);
  thread_.join();
  if (endpoint_.is_unix()) {
    ::unlink(endpoint_.unix_path.c_str());
  }
}

void ControlServer::run() {
  for (;;) {
    std::array<pollfd, 2> entries = {pollfd{listener_.get(), POLLIN, 0},
                                     pollfd{leave_.get(), POLLIN, 0}};
    ::poll(entries.data(), entries.size(), -1);
    if (entries[1].revents != 0) {
      return;
    }
    if (const os::UniqueFd client = os::accept_from(listener_.get()); client.valid()) {
      serve(client.get());
    }
  }
}

void ControlServer::serve(int client) {
  const Instant deadline = os::now() + kLongest;
  std::string in;
  inference::HttpHeadParser parser;
  inference::HttpHead head;
  inference::HeadResult parsed = parser.parse_request(in, head);
  while (parsed.state == HeadState::kIncomplete) {
    if (!read_more(client, in, deadline)) {
      return;
    }
    parsed = parser.parse_request(in, head);
  }
  Answer reply;
  if (parsed.state == HeadState::kRefused) {
    reply = refusal(make_error(ErrorKind::kUsage, parsed.reason));
  } else if (head.framing == BodyFraming::kChunked || head.content_length > kMaxBodyBytes) {
    reply = refusal(make_error(ErrorKind::kUsage, "a body of more than 1 MiB or unknown length"));
  } else {
    const std::string method(head.method);  // reading on may move what it is in
    const std::string target(head.target);
    while (in.size() < parsed.head_bytes + head.content_length) {
      if (!read_more(client, in, deadline)) {
        return;
      }
    }
    reply = answer(keeper_, method, target,
                   std::string_view(in).substr(parsed.head_bytes, head.content_length));
  }
  std::string out;
  inference::append_status_line(out, reply.status);
  inference::append_field(out, "Content-Type", "application/json");
  inference::append_field(out, "Content-Length", reply.body.size());
  inference::append_field(out, "Connection", "close");
  out.append("\r\n").append(reply.body);
  send_all(client, out, deadline);
}

}  // namespace septet::balance
