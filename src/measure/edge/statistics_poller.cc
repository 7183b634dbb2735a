#include "measure/edge/statistics_poller.h"

#include <algorithm>
#include <utility>

#include "measure/edge/grpc_query.h"

namespace septet::measure {

namespace {

// Answers outstanding at most; a server that is slower than that gets no further question.
constexpr std::size_t kMaxQueries = 64;

}  // namespace

// One moment's counters, as they come in from the servers.
struct StatisticsPoller::Snapshot {
  ServerStatistics sum;
  std::size_t missing = 0;
  bool complete = true;
  OnSnapshot callback;

  void add(const ServerStatistics* statistics) {
    complete = complete && statistics != nullptr;
    if (statistics != nullptr) {
      sum.merge(*statistics);
    }
    if (--missing == 0) {
      callback(complete ? &sum : nullptr);
    }
  }
};

// A connection that asks one server.
class StatisticsPoller::Query final : public ExchangeClient::Listener {
 public:
  Query(os::EventLoop& loop, const Settings& settings, std::size_t server)
      : settings_(settings),
        server_(server),
        client_(settings.make_client(loop, settings.servers[server].endpoint, *this,
                                     ExchangeClient::BodyUse::kKeep)) {
    if (settings.grpc) {
      head_ = grpc_path("ModelStatistics");
      body_ = statistics_request_grpc(settings.model, settings.version);
    } else {
      head_ = request_head("GET", model_path(settings.model, settings.version) + "/stats",
                           settings.servers[server].named(), settings.servers[server].headers);
    }
  }

  bool busy() const { return client_->busy(); }
  std::size_t server() const { return server_; }
  void ask(std::shared_ptr<Snapshot> snapshot) {
    snapshot_ = std::move(snapshot);
    client_->send({head_, body_, {}});
  }
  void forget() {
    client_->close();
    snapshot_.reset();
  }

  void on_answered(ExchangeClient& /*client*/, const ExchangeClient::Answer& answer) override {
    const Result<ServerStatistics> statistics =
        settings_.grpc ? parse_statistics_grpc(answer.body, settings_.model, settings_.version)
                       : parse_statistics(answer.body, settings_.model, settings_.version);
    const bool good = answer.status == 200 && statistics.ok();
    std::exchange(snapshot_, nullptr)->add(good ? &*statistics : nullptr);
  }
  void on_failed(ExchangeClient& /*client*/, FailureKind /*kind*/,
                 const std::string& /*reason*/) override {
    std::exchange(snapshot_, nullptr)->add(nullptr);
  }

 private:
  const Settings& settings_;
  std::size_t server_;
  std::unique_ptr<ExchangeClient> client_;
  std::string head_;
  std::string body_;
  std::shared_ptr<Snapshot> snapshot_;
};

StatisticsPoller::StatisticsPoller(os::EventLoop& loop, Settings settings)
    : loop_(loop), settings_(std::move(settings)) {}

StatisticsPoller::~StatisticsPoller() = default;

void StatisticsPoller::ask(OnSnapshot callback) {
  const auto snapshot = std::make_shared<Snapshot>();
  snapshot->missing = settings_.servers.size();
  snapshot->callback = std::move(callback);
  for (std::size_t server = 0; server < settings_.servers.size(); ++server) {
    auto free = std::find_if(queries_.begin(), queries_.end(), [&](const auto& query) {
      return !query->busy() && query->server() == server;
    });
    if (free == queries_.end()) {
      if (queries_.size() >= kMaxQueries) {
        snapshot->add(nullptr);
        continue;
      }
      queries_.push_back(std::make_unique<Query>(loop_, settings_, server));
      free = std::prev(queries_.end());
    }
    (*free)->ask(snapshot);
  }
}

void StatisticsPoller::forget() {
  for (const auto& query : queries_) {
    query->forget();
  }
}

}  // namespace septet::measure
