// MetricsPoller: reads a server's Prometheus page again and again while a level is measured.
//
// Owned by the LoadGenerator, lives on its loop. A page that comes late or not at all is passed
// over: the load does not depend on it.
#pragma once

#include <functional>
#include <string>

#include "measure/edge/http_client.h"
#include "measure/edge/server_access.h"
#include "measure/gpu_metrics.h"

namespace septet::measure {

// Where the page is and how often it is read.
struct MetricsSource {
  ServerAccess server;
  std::string path = "/metrics";
  Duration interval = seconds(1);
};

// The page as it is now. kPrecondition: nothing answers; kFailed: it is no page.
Result<GpuReading> read_gpu_metrics(const MetricsSource& source);

class MetricsPoller final : private ExchangeClient::Listener {
 public:
  using OnReading = std::function<void(const GpuReading&)>;

  MetricsPoller(os::EventLoop& loop, MetricsSource source, OnReading on_reading);
  ~MetricsPoller() override;

  // Reads now and then at every interval, until stop().
  void start();
  void stop();

 private:
  void ask();
  void on_answered(ExchangeClient& client, const ExchangeClient::Answer& answer) override;
  void on_failed(ExchangeClient& client, FailureKind kind, const std::string& reason) override;

  os::EventLoop& loop_;
  MetricsSource source_;
  OnReading on_reading_;
  std::string head_;
  HttpClient client_;
  os::EventLoop::Timer timer_;
};

}  // namespace septet::measure
