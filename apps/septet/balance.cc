// septet balance: the proxy alone, before any KServe v2 servers.

#include <fmt/format.h>

#include <csignal>
#include <memory>

#include "balance/edge/control_server.h"
#include "balance/edge/proxy.h"
#include "balance/edge/upstream_source.h"
#include "base/text.h"
#include "inference/edge/tls_stream.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

constexpr std::uint16_t kDefaultPort = 8000;  // Triton's HTTP port

struct BalanceOptions {
  std::vector<std::string> listen = {"127.0.0.1:8000"};
  std::vector<std::string> upstreams;
  std::string upstreams_file;
  std::string control;
  std::string policy = "pull";
  std::string hedge = "off";
  double hedge_budget = 0.05;
  double timeout_s = 60;
  std::size_t max_queued = 4096;
  std::uint64_t memory_mib = 512;
  bool no_slots = false;
  bool foreign_shared_memory = false;
  std::string access_log;
  std::uint64_t access_log_every = 100;
  std::string certificate;
  std::string key;
};

// "off", or a percentile: "p95", "p99.9".
Result<double> hedge_percentile(const std::string& text) {
  if (text == "off") {
    return 0.0;
  }
  const std::optional<double> percent =
      text.starts_with('p') ? parse_double(text.substr(1)) : std::nullopt;
  if (!percent || *percent < 50 || *percent > 99.99) {
    return make_error(ErrorKind::kUsage, fmt::format("cannot hedge at '{}'", text),
                      "name a percentile between p50 and p99.99, such as p95, or off");
  }
  return *percent / 100;
}

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
  const Result<double> percentile = hedge_percentile(wished.hedge);
  if (!percentile.ok()) {
    return percentile.error();
  }
  options.hedge_percentile = *percentile;
  options.hedge_budget = wished.hedge_budget;
  options.request_timeout = from_seconds(wished.timeout_s);
  options.max_queued = wished.max_queued;
  options.memory_bytes = wished.memory_mib << 20U;
  options.slots = !wished.no_slots;
  options.foreign_shared_memory = wished.foreign_shared_memory;
  options.access_log = wished.access_log;
  options.access_log_every = wished.access_log_every;
  auto identity = inference::TlsIdentity::from_files(
      wished.certificate, wished.key, inference::TlsIdentity::Protocols::kHttp1And2);
  if (!identity.ok()) {
    return identity.error();
  }
  options.tls = *std::move(identity);
  return options;
}

// Looks once a second for a changed set, until a signal ends it; a set that cannot be read leaves
// the one in use as it is.
void serve(balance::UpstreamKeeper& keeper, const sigset_t& signals) {
  std::string complaint;
  for (;;) {
    const timespec second{1, 0};
    const int received = sigtimedwait(&signals, nullptr, &second);
    if (received == SIGINT || received == SIGTERM) {
      return;
    }
    const Result<Ok> read = keeper.refresh();
    if (!read.ok() && read.error().text() != complaint) {
      fmt::print(stderr, "septet: {}; the replicas in use stay\n", read.error().text());
    }
    complaint = read.ok() ? "" : read.error().text();
  }
}

Result<std::unique_ptr<balance::ControlServer>> start_control(const std::string& address,
                                                              balance::UpstreamKeeper& keeper) {
  if (address.empty()) {
    return std::unique_ptr<balance::ControlServer>();
  }
  constexpr std::uint16_t kAnyPort = 0;
  const Result<os::Endpoint> endpoint = os::parse_endpoint(address, kAnyPort);
  return endpoint.ok() ? balance::ControlServer::start(*endpoint, keeper) : endpoint.error();
}

int run_balance(const BalanceOptions& wished, OutputFormat format) {
  Result<balance::ProxyOptions> options = proxy_options(wished);
  if (!options.ok()) {
    return fail(options.error(), format);
  }
  const balance::UpstreamSource source(wished.upstreams, wished.upstreams_file);
  const Result<std::vector<balance::Upstream>> upstreams = source.read();
  if (!upstreams.ok()) {
    return fail(upstreams.error(), format);
  }
  if (upstreams->empty()) {
    return fail(make_error(ErrorKind::kUsage, "there is no replica to balance",
                           "give --upstream or a file with --upstreams"),
                format);
  }
  std::signal(SIGPIPE, SIG_IGN);  // TLS writes without MSG_NOSIGNAL; the error tells
  // Blocked before the proxy's thread starts, so that only serve() sees them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Result<std::unique_ptr<balance::Proxy>> proxy =
      balance::Proxy::start(*std::move(options), *upstreams);
  if (!proxy.ok()) {
    return fail(proxy.error(), format);
  }
  balance::UpstreamKeeper keeper(wished.upstreams, wished.upstreams_file, *upstreams,
                                 [&proxy](const std::vector<balance::Upstream>& wanted) {
                                   const Result<Ok> used = (*proxy)->set_upstreams(wanted);
                                   if (used.ok()) {
                                     fmt::print(stderr, "septet: now balancing {} replica(s)\n",
                                                wanted.size());
                                   }
                                   return used;
                                 });
  const auto control = start_control(wished.control, keeper);
  if (!control.ok()) {
    return fail(control.error(), format);
  }
  for (const os::Endpoint& endpoint : (*proxy)->endpoints()) {
    fmt::print(stderr, "septet: balancing {} replica(s) on {}, policy {}\n", upstreams->size(),
               endpoint.text(), wished.policy);
  }
  if (*control) {
    fmt::print(stderr, "septet: replicas are changed at {}\n", (*control)->endpoint().text());
  }
  serve(keeper, signals);
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
  verb->add_option("--upstream", wished->upstreams,
                   "A replica, or every address of a DNS name; options in the same word: "
                   "'... grpc=ADDRESS|PORT name=NAME models=A,B'; may be given again")
      ->type_name("HOST:PORT|unix:/PATH|dns:NAME:PORT");
  verb->add_option("--upstreams", wished->upstreams_file,
                   "A file with one replica a line; changes are taken up while it runs")
      ->type_name("FILE");
  verb->add_option("--control", wished->control,
                   "Where the replicas are shown and changed while it runs (GET, PUT, POST, DELETE "
                   "/septet/upstreams); this machine only")
      ->type_name("unix:/PATH|127.0.0.1:PORT");
  verb->add_option("--tls-cert", wished->certificate,
                   "PEM file: the certificate with its chain; TLS for HTTP and gRPC over TCP")
      ->type_name("FILE");
  verb->add_option("--tls-key", wished->key, "PEM file: the certificate's private key")
      ->type_name("FILE");
  verb->add_option("--policy", wished->policy,
                   "pull, round-robin, random, power-of-two, least-outstanding, shortest-delay");
  verb->add_option(
          "--hedge", wished->hedge,
          "Send a request a second time, to an idle replica, when it has taken longer than "
          "this percentile of its model's; the first answer counts; off by default")
      ->type_name("off|pPERCENT");
  verb->add_option("--hedge-budget", wished->hedge_budget,
                   "Second copies per answered request, at most")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--timeout", wished->timeout_s, "Seconds from arrival to reply")
      ->check(CLI::PositiveNumber);
  verb->add_option("--max-queued", wished->max_queued, "Requests that may wait, per model");
  verb->add_option("--memory", wished->memory_mib, "MiB for all request and reply bodies together");
  verb->add_flag("--no-slots", wished->no_slots,
                 "Send septet's own replicas whole bodies, too, instead of shared memory");
  verb->add_flag("--foreign-shared-memory", wished->foreign_shared_memory,
                 "Other servers on this machine (Triton) read large bodies in /dev/shm, too; only "
                 "for servers that may see all requests");
  verb->add_option("--access-log", wished->access_log,
                   "Write a line of JSON for a sample of the requests; off by default")
      ->type_name("FILE|-");
  verb->add_option("--access-log-every", wished->access_log_every,
                   "One request in so many is written")
      ->check(CLI::PositiveNumber);
  verb->callback([&action, &globals, wished] {
    action = [&globals, wished] { return run_balance(*wished, globals.output); };
  });
}

}  // namespace septet::app
