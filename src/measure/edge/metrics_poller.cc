#include "measure/edge/metrics_poller.h"

#include <fmt/format.h>

#include <utility>

#include "measure/edge/model_query.h"
#include "os/clock.h"

namespace septet::measure {

Result<GpuReading> read_gpu_metrics(const MetricsSource& source) {
  const Result<HttpReply> reply = http_exchange(source.server, "GET", source.path, {});
  const std::string where = source.server.named().text() + source.path;
  constexpr const char* kHint = "name the server's Prometheus page with --metrics-url";
  if (!reply.ok()) {
    return make_error(reply.error().kind,
                      fmt::format("cannot read metrics at {}: {}", where, reply.error().message),
                      kHint);
  }
  if (reply->status != 200) {
    return make_error(
        ErrorKind::kFailed,
        fmt::format("cannot read metrics at {}: it answered {}", where, reply->status), kHint);
  }
  return parse_gpu_metrics(reply->body);
}

MetricsPoller::MetricsPoller(os::EventLoop& loop, MetricsSource source, OnReading on_reading)
    : loop_(loop),
      source_(std::move(source)),
      on_reading_(std::move(on_reading)),
      head_(request_head("GET", source_.path, source_.server.named(), source_.server.headers)),
      client_(loop, source_.server.endpoint, *this, ExchangeClient::BodyUse::kKeep,
              source_.server.tls) {}

MetricsPoller::~MetricsPoller() { stop(); }

void MetricsPoller::start() {
  stop();
  ask();
}

void MetricsPoller::stop() {
  loop_.cancel(timer_);
  client_.close();
}

void MetricsPoller::ask() {
  timer_ = loop_.call_after(source_.interval, [this] { ask(); });
  if (!client_.busy()) {
    client_.send({head_, {}, {}});
  } else if (os::now() - client_.sent() > kQueryTimeout) {
    client_.fail(FailureKind::kTimeout, "no page in time");
  }
}

void MetricsPoller::on_answered(ExchangeClient& /*client*/, const ExchangeClient::Answer& answer) {
  if (answer.status == 200) {
    on_reading_(parse_gpu_metrics(answer.body));
  }
}

void MetricsPoller::on_failed(ExchangeClient& /*client*/, FailureKind /*kind*/,
                              const std::string& /*reason*/) {}

}  // namespace septet::measure
