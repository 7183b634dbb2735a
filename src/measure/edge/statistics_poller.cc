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
  ServerSnapshot sum;
  std::size_t missing = 0;
  bool complete = true;
  OnSnapshot callback;

  // Of the model (0) or of a part (from 1).
  void add(std::size_t model, const ServerStatistics* statistics) {
    complete = complete && statistics != nullptr;
    if (statistics != nullptr) {
      (model == 0 ? sum.model : sum.parts[model - 1]).merge(*statistics);
    }
    if (--missing == 0) {
      callback(complete ? &sum : nullptr);
    }
  }
};

// A connection that asks one server for one model.
class StatisticsPoller::Query final : public ExchangeClient::Listener {
 public:
  Query(os::EventLoop& loop, const Settings& settings, std::size_t server, std::size_t model)
      : grpc_(settings.grpc),
        server_(server),
        model_(model),
        name_(model == 0 ? settings.model : settings.parts[model - 1].name),
        version_(model == 0 ? settings.version : settings.parts[model - 1].version),
        client_(settings.make_client(loop, settings.servers[server].endpoint, *this,
                                     ExchangeClient::BodyUse::kKeep)) {
    if (settings.grpc) {
      head_ = grpc_path("ModelStatistics");
      body_ = statistics_request_grpc(name_, version_);
    } else {
      head_ = request_head("GET", model_path(name_, version_) + "/stats",
                           settings.servers[server].named(), settings.servers[server].headers);
    }
  }

  bool busy() const { return client_->busy(); }
  bool asks(std::size_t server, std::size_t model) const {
    return server_ == server && model_ == model;
  }
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
        grpc_ ? parse_statistics_grpc(answer.body, name_, version_)
              : parse_statistics(answer.body, name_, version_);
    const bool good = answer.status == 200 && statistics.ok();
    std::exchange(snapshot_, nullptr)->add(model_, good ? &*statistics : nullptr);
  }
  void on_failed(ExchangeClient& /*client*/, FailureKind /*kind*/,
                 const std::string& /*reason*/) override {
    std::exchange(snapshot_, nullptr)->add(model_, nullptr);
  }

 private:
  bool grpc_;
  std::size_t server_;
  std::size_t model_;
  std::string name_;
  std::string version_;
  std::unique_ptr<ExchangeClient> client_;
  std::string head_;
  std::string body_;
  std::shared_ptr<Snapshot> snapshot_;
};

StatisticsPoller::StatisticsPoller(os::EventLoop& loop, Settings settings)
    : loop_(loop), settings_(std::move(settings)) {}

StatisticsPoller::~StatisticsPoller() = default;

// An idle query, perhaps a new one; null when too many are waiting for answers.
StatisticsPoller::Query* StatisticsPoller::free_query(std::size_t server, std::size_t model) {
  const auto free = std::find_if(queries_.begin(), queries_.end(), [&](const auto& query) {
    return !query->busy() && query->asks(server, model);
  });
  if (free != queries_.end()) {
    return free->get();
  }
  if (queries_.size() >= kMaxQueries * (1 + settings_.parts.size())) {
    return nullptr;
  }
  return queries_.emplace_back(std::make_unique<Query>(loop_, settings_, server, model)).get();
}

void StatisticsPoller::ask(OnSnapshot callback) {
  const auto snapshot = std::make_shared<Snapshot>();
  const std::size_t models = 1 + settings_.parts.size();
  snapshot->missing = settings_.servers.size() * models;
  snapshot->sum.parts.resize(settings_.parts.size());
  snapshot->callback = std::move(callback);
  for (std::size_t server = 0; server < settings_.servers.size(); ++server) {
    for (std::size_t model = 0; model < models; ++model) {
      if (Query* query = free_query(server, model)) {
        query->ask(snapshot);
      } else {
        snapshot->add(model, nullptr);
      }
    }
  }
}

void StatisticsPoller::forget() {
  for (const auto& query : queries_) {
    query->forget();
  }
}

}  // namespace septet::measure
