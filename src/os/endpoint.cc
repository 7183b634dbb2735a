#include "os/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/text.h"

namespace septet::os {

namespace {

constexpr int kBacklog = 4096;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Address> unix_address(const std::string& path) {
  Address address;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  if (path.size() >= sizeof un.sun_path) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("Unix socket path '{}' is longer than {} bytes", path, sizeof un.sun_path - 1),
        "choose a shorter directory");
  }
  std::memcpy(un.sun_path, path.data(), path.size());
  std::memcpy(&address.storage, &un, sizeof un);
  address.length = sizeof un;
  return address;
}

// Every address of a TCP endpoint, at least one.
Result<std::vector<Address>> resolve_all(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const char* host = endpoint.host.empty() ? nullptr : endpoint.host.c_str();
  const int status = getaddrinfo(host, port.c_str(), &hints, &found);
  if (status != 0) {
    return make_error(ErrorKind::kNotFound, fmt::format("cannot resolve host '{}': {}",
                                                        endpoint.host, gai_strerror(status)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

Result<Address> resolve(const Endpoint& endpoint, int flags) {
  if (endpoint.is_unix()) {
    return unix_address(endpoint.unix_path);
  }
  Result<std::vector<Address>> addresses = resolve_all(endpoint, flags);
  if (!addresses.ok()) {
    return addresses.error();
  }
  return addresses->front();
}

// Host and port in figures.
Endpoint numeric(const Address& address) {
  Endpoint endpoint;
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  if (getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
    endpoint.host = host;
    endpoint.port = static_cast<std::uint16_t>(parse_uint(port).value_or(0));
  }
  return endpoint;
}

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool answers(const Address& address) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.get(), address.get(), address.length) == 0 || errno == EAGAIN;
}

}  // namespace

std::string Endpoint::text() const {
  if (is_unix()) {
    return "unix:" + unix_path;
  }
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  const std::string original(text);
  Endpoint endpoint;
  endpoint.port = default_port;
  if (text.starts_with("unix:")) {
    text.remove_prefix(text.starts_with("unix://") ? 7 : 5);
    endpoint.unix_path = std::string(text);
    if (endpoint.unix_path.empty()) {
      return make_error(ErrorKind::kUsage, "address 'unix:' names no path", "write unix:/path");
    }
    return endpoint;
  }
  if (text.starts_with("http://")) {
    text.remove_prefix(7);
  }
  while (text.ends_with('/')) {
    text.remove_suffix(1);
  }
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return make_error(ErrorKind::kUsage, fmt::format("address '{}' lacks a ']'", original));
    }
    endpoint.host = std::string(text.substr(1, close - 1));
    port = text.substr(close + 1);
  } else {
    const std::size_t colon = text.rfind(':');
    endpoint.host = std::string(text.substr(0, colon));
    port = colon == std::string_view::npos ? std::string_view{} : text.substr(colon);
  }
  if (!port.empty()) {
    const auto number = parse_uint(port.substr(1));
    if (!port.starts_with(':') || !number || *number > 65535) {
      return make_error(ErrorKind::kUsage, fmt::format("address '{}' has no valid port", original),
                        "write HOST:PORT with a port from 0 to 65535, or unix:/path");
    }
    endpoint.port = static_cast<std::uint16_t>(*number);
  }
  return endpoint;
}

Result<UniqueFd> listen_on(const Endpoint& endpoint) {
  const Result<Address> address = resolve(endpoint, AI_PASSIVE);
  if (!address.ok()) {
    return address.error();
  }
  UniqueFd fd(socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (endpoint.is_unix()) {
    if (!answers(*address)) {
      ::unlink(endpoint.unix_path.c_str());
    }
  } else {
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (bind(fd.get(), address->get(), address->length) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int reason = errno;
    const bool taken = reason == EADDRINUSE;
    return make_error(
        reason == EACCES ? ErrorKind::kPermission : ErrorKind::kPrecondition,
        fmt::format("cannot listen on {}: {}", endpoint.text(), std::strerror(reason)),
        taken ? "stop the program that listens there or choose another port" : "");
  }
  return fd;
}

Endpoint local_endpoint(int fd) {
  Address address;
  address.length = sizeof address.storage;
  Endpoint endpoint;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return endpoint;
  }
  if (address.storage.ss_family == AF_UNIX) {
    sockaddr_un un{};
    std::memcpy(&un, &address.storage, sizeof un);
    endpoint.unix_path = un.sun_path;
    return endpoint;
  }
  return numeric(address);
}

Result<UniqueFd> start_connect(const Endpoint& endpoint) {
  const Result<Address> address = resolve(endpoint, 0);
  if (!address.ok()) {
    return address.error();
  }
  UniqueFd fd(socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!endpoint.is_unix()) {
    set_no_delay(fd.get());
  }
  if (connect(fd.get(), address->get(), address->length) != 0 && errno != EINPROGRESS) {
    return make_error(ErrorKind::kPrecondition, fmt::format("cannot connect to {}: {}",
                                                            endpoint.text(), std::strerror(errno)));
  }
  return fd;
}

int connect_result(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

Result<UniqueFd> connect_to(const Endpoint& endpoint, int timeout_ms) {
  Result<UniqueFd> fd = start_connect(endpoint);
  if (!fd.ok()) {
    return fd;
  }
  pollfd waiting{fd->get(), POLLOUT, 0};
  const int ready = poll(&waiting, 1, timeout_ms);
  const int reason = ready == 0 ? ETIMEDOUT : ready < 0 ? errno : connect_result(fd->get());
  if (reason != 0) {
    return make_error(
        ErrorKind::kPrecondition,
        fmt::format("cannot connect to {}: {}", endpoint.text(), std::strerror(reason)),
        "check the address and that the server runs");
  }
  return fd;
}

Result<Endpoint> reachable_address(const Endpoint& endpoint, int timeout_ms) {
  std::vector<Endpoint> candidates;
  if (endpoint.is_unix()) {
    candidates.push_back(endpoint);
  } else {
    const Result<std::vector<Address>> addresses = resolve_all(endpoint, 0);
    if (!addresses.ok()) {
      return addresses.error();
    }
    for (const Address& address : *addresses) {
      candidates.push_back(numeric(address));
    }
  }
  Error last;
  for (const Endpoint& candidate : candidates) {
    const Result<UniqueFd> fd = connect_to(candidate, timeout_ms);
    if (fd.ok()) {
      return candidate;
    }
    last = fd.error();
  }
  return last;
}

UniqueFd accept_from(int listener) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    set_no_delay(fd.get());  // refused on Unix sockets, which need it not
  }
  return fd;
}

}  // namespace septet::os
