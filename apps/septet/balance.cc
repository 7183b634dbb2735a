// septet balance: the proxy alone, before any KServe v2 servers.

#include <fmt/format.h>

#include <csignal>
#include <memory>

#include "balance/edge/proxy.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kDefaultPort = 8000;  // Triton's HTTP port

struct BalanceOptions {
  std::vector<std::string> listen = {"127.0.0.1:8000"};
  std::vector<std::string> upstreams;
  std::string policy = "pull";
  double timeout_s = 60;
  std::size_t max_queued = 4096;
  std::uint64_t memory_mib = 512;
};

Result<balance::ProxyOptions> proxy_options(const BalanceOptions& wished) {
  balance::ProxyOptions options;
  for (const std::string& text : wished.listen) {
    Result<os::Endpoint> endpoint = os::parse_endpoint(text, kDefaultPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    options.listen.push_back(*std::move(endpoint));
  }
  const std::optional<balance::Policy> policy = balance::parse_policy(wished.policy);
  if (!policy) {
    return make_error(ErrorKind::kUsage, fmt::format("unknown policy '{}'", wished.policy),
                      "choose pull, round-robin, random, power-of-two, least-outstanding or "
                      "shortest-delay");
  }
  options.policy = *policy;
  options.request_timeout = from_seconds(wished.timeout_s);
  options.max_queued = wished.max_queued;
  options.memory_bytes = wished.memory_mib << 20U;
  return options;
}

Result<std::vector<balance::Upstream>> parse_upstreams(const std::vector<std::string>& texts) {
  std::vector<balance::Upstream> upstreams;
  for (const std::string& text : texts) {
    Result<os::Endpoint> endpoint = os::parse_endpoint(text, kDefaultPort);
    if (!endpoint.ok()) {
      return endpoint.error();
    }
    upstreams.push_back({endpoint->text(), *endpoint, {}});
  }
  return upstreams;
}

int run_balance(const BalanceOptions& wished, OutputFormat format) {
  Result<balance::ProxyOptions> options = proxy_options(wished);
  if (!options.ok()) {
    return fail(options.error(), format);
  }
  Result<std::vector<balance::Upstream>> upstreams = parse_upstreams(wished.upstreams);
  if (!upstreams.ok()) {
    return fail(upstreams.error(), format);
  }
  // Blocked before the proxy's thread starts, so that only sigwait() below sees them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const std::size_t count = upstreams->size();
  Result<std::unique_ptr<balance::Proxy>> proxy =
      balance::Proxy::start(*std::move(options), *std::move(upstreams));
  if (!proxy.ok()) {
    return fail(proxy.error(), format);
  }
  for (const os::Endpoint& endpoint : (*proxy)->endpoints()) {
    fmt::print(stderr, "septet: balancing {} replica(s) on {}, policy {}\n", count, endpoint.text(),
               wished.policy);
  }
  int received = 0;
  sigwait(&ends, &received);
  const balance::ProxyStats stats = (*proxy)->stats();
  fmt::print(stderr, "septet: {} requests, {} sent again, {} refused\n", stats.requests,
             stats.retries, stats.refused);
  return 0;
}

}  // namespace

void add_balance(CLI::App& app, const Globals& globals, Action& action) {
  auto wished = std::make_shared<BalanceOptions>();
  CLI::App* verb = app.add_subcommand("balance", "One address in front of several v2 servers");
  verb->add_option("--listen", wished->listen, "Where clients connect; may be given again")
      ->type_name("HOST:PORT|unix:/PATH");
  verb->add_option("--upstream", wished->upstreams, "A replica; may be given again")
      ->type_name("HOST:PORT|unix:/PATH")
      ->required();
  verb->add_option("--policy", wished->policy,
                   "pull, round-robin, random, power-of-two, least-outstanding, shortest-delay");
  verb->add_option("--timeout", wished->timeout_s, "Seconds from arrival to reply")
      ->check(CLI::PositiveNumber);
  verb->add_option("--max-queued", wished->max_queued, "Requests that may wait, per model");
  verb->add_option("--memory", wished->memory_mib, "MiB for all request and reply bodies together");
  verb->callback([&action, &globals, wished] {
    action = [&globals, wished] { return run_balance(*wished, globals.output); };
  });
}

}  // namespace septet::app
