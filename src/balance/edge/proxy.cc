#include "balance/edge/proxy.h"

#include <fmt/format.h>

#include <future>
#include <set>
#include <thread>

#include "balance/edge/reactor.h"

namespace septet::balance {

namespace {

Result<Ok> check_upstreams(const std::vector<Upstream>& upstreams) {
  std::set<std::string> names;
  for (const Upstream& upstream : upstreams) {
    if (upstream.name.empty()) {
      return make_error(ErrorKind::kUsage, "an upstream has no name");
    }
    if (!names.insert(upstream.name).second) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("upstream '{}' is named twice", upstream.name),
                        "give every upstream a name of its own");
    }
  }
  return Ok{};
}

}  // namespace

class Proxy::Impl {
 public:
  explicit Impl(ProxyOptions options) : reactor_(std::move(options)) {}
  ~Impl() {
    reactor_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  Result<Ok> start(std::vector<Upstream> upstreams) {
    SEPTET_TRY(reactor_.listen());
    reactor_.set_upstreams(std::move(upstreams));
    thread_ = std::thread([this] { reactor_.run(); });
    return Ok{};
  }
  // Runs the function in the reactor's thread and waits for its result.
  template <typename Function>
  auto ask(Function function) {
    std::promise<decltype(function(reactor_))> promise;
    auto answer = promise.get_future();
    reactor_.post([this, &promise, &function] { promise.set_value(function(reactor_)); });
    return answer.get();
  }
  const Reactor& reactor() const { return reactor_; }

 private:
  Reactor reactor_;
  std::thread thread_;
};

Proxy::Proxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Proxy::~Proxy() = default;

Result<std::unique_ptr<Proxy>> Proxy::start(ProxyOptions options, std::vector<Upstream> upstreams) {
  SEPTET_TRY(check_upstreams(upstreams));
  if (options.listen.empty()) {
    return make_error(ErrorKind::kUsage, "the proxy has no address to listen on");
  }
  auto impl = std::make_unique<Impl>(std::move(options));
  SEPTET_TRY(impl->start(std::move(upstreams)));
  return std::unique_ptr<Proxy>(new Proxy(std::move(impl)));
}

const std::vector<os::Endpoint>& Proxy::endpoints() const { return impl_->reactor().endpoints(); }

Result<Ok> Proxy::set_upstreams(std::vector<Upstream> upstreams) {
  SEPTET_TRY(check_upstreams(upstreams));
  return impl_->ask([&upstreams](Reactor& reactor) {
    reactor.set_upstreams(std::move(upstreams));
    return Ok{};
  });
}

ProxyStats Proxy::stats() const {
  return impl_->ask([](const Reactor& reactor) { return reactor.stats(); });
}

}  // namespace septet::balance
