#include "balance/edge/upstream_source.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <optional>

#include "base/text.h"

namespace septet::balance {

namespace {

constexpr std::uint16_t kDefaultPort = 8000;  // Triton's HTTP port
constexpr std::uint16_t kDefaultGrpcPort = 8001;
constexpr std::string_view kDns = "dns:";

// Every address behind the name, as numbers, in a fixed order.
Result<std::vector<os::Endpoint>> look_up(const os::Endpoint& named) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(named.host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    return make_error(
        ErrorKind::kNotFound,
        fmt::format("cannot resolve upstream '{}': {}", named.host, gai_strerror(status)),
        "check the name; replicas known before stay in use");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<os::Endpoint> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.push_back({host.data(), named.port, {}});
    }
  }
  std::sort(addresses.begin(), addresses.end(),
            [](const os::Endpoint& a, const os::Endpoint& b) { return a.host < b.host; });
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

// A port alone is one of the same host, so that it can be said of every address of a DNS name.
Result<Ok> apply_grpc(std::string_view value, Upstream& upstream) {
  const std::optional<std::uint64_t> port = parse_uint(value);
  if (port && *port > 0 && *port <= 65535 && !upstream.endpoint.is_unix()) {
    upstream.grpc = os::Endpoint{upstream.endpoint.host, static_cast<std::uint16_t>(*port), {}};
    return Ok{};
  }
  Result<os::Endpoint> endpoint = os::parse_endpoint(value, kDefaultGrpcPort);
  if (port || !endpoint.ok()) {
    return make_error(ErrorKind::kUsage, fmt::format("'grpc={}' is no address", value),
                      "write grpc=unix:/PATH, grpc=HOST:PORT, or grpc=PORT for the same host");
  }
  upstream.grpc = *std::move(endpoint);
  return Ok{};
}

Result<Ok> apply_option(std::string_view option, Upstream& upstream) {
  if (option.starts_with("name=") && option.size() > 5) {
    upstream.name = std::string(option.substr(5));
    return Ok{};
  }
  if (option.starts_with("models=") && option.size() > 7) {
    for (const std::string_view model : split(option.substr(7), ',')) {
      upstream.models.emplace_back(model);
    }
    return Ok{};
  }
  if (option.starts_with("grpc=") && option.size() > 5) {
    return apply_grpc(option.substr(5), upstream);
  }
  return make_error(ErrorKind::kUsage, fmt::format("upstream option '{}' is unknown", option),
                    "write name=NAME, grpc=ADDRESS or models=A,B");
}

}  // namespace

Result<std::vector<Upstream>> parse_upstream(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) {
      words.push_back(word);
    }
  }
  if (words.empty()) {
    return make_error(ErrorKind::kUsage, "an upstream is empty",
                      "write unix:/PATH, HOST:PORT or dns:NAME:PORT");
  }
  const bool by_dns = words.front().starts_with(kDns);
  const std::string_view address = by_dns ? words.front().substr(kDns.size()) : words.front();
  const Result<os::Endpoint> endpoint = os::parse_endpoint(address, kDefaultPort);
  if (!endpoint.ok()) {
    return endpoint.error();
  }
  std::vector<os::Endpoint> addresses = {*endpoint};
  if (by_dns) {
    Result<std::vector<os::Endpoint>> found = look_up(*endpoint);
    if (!found.ok()) {
      return found.error();
    }
    addresses = *std::move(found);
  }
  std::vector<Upstream> upstreams;
  for (const os::Endpoint& one : addresses) {
    Upstream upstream{.name = one.text(), .endpoint = one, .models = {}};
    for (std::size_t i = 1; i < words.size(); ++i) {
      SEPTET_TRY(apply_option(words[i], upstream));
    }
    if (by_dns && upstream.name != one.text()) {
      upstream.name += "@" + one.text();  // one name for many would not be unique
    }
    upstreams.push_back(std::move(upstream));
  }
  return upstreams;
}

Result<std::vector<Upstream>> UpstreamSource::read() const {
  std::vector<Upstream> all;
  const auto add = [&all](std::string_view line) -> Result<Ok> {
    Result<std::vector<Upstream>> some = parse_upstream(line);
    if (!some.ok()) {
      return some.error();
    }
    for (Upstream& upstream : *some) {
      const auto same = [&upstream](const Upstream& other) { return other.name == upstream.name; };
      if (std::none_of(all.begin(), all.end(), same)) {
        all.push_back(std::move(upstream));
      }
    }
    return Ok{};
  };
  for (const std::string& word : words_) {
    SEPTET_TRY(add(word));
  }
  if (file_.empty()) {
    return all;
  }
  std::ifstream file(file_);
  if (!file) {
    return make_error(ErrorKind::kNotFound, fmt::format("cannot read upstreams from '{}'", file_));
  }
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string_view text = trim(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) {
      continue;
    }
    if (const Result<Ok> added = add(text); !added.ok()) {
      Error error = added.error();
      error.message = fmt::format("{}:{}: {}", file_, number, error.message);
      return error;
    }
  }
  return all;
}

}  // namespace septet::balance
