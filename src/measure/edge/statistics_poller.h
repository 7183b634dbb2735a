// StatisticsPoller: takes the server's counters beside the load, on connections of its own.
//
// Owned by the LoadGenerator, lives on its loop. With several servers a snapshot is their sum.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/edge/exchange_client.h"
#include "measure/edge/model_query.h"

namespace septet::measure {

class StatisticsPoller {
 public:
  struct Settings {
    std::vector<ServerAccess> servers;
    std::string model;
    std::string version;           // empty = all versions together
    std::vector<ModelPart> parts;  // asked for beside the model
    bool grpc = false;
    ClientFactory make_client;
  };

  StatisticsPoller(os::EventLoop& loop, Settings settings);
  ~StatisticsPoller();

  // Asks every server now; calls back once all have answered, with nothing if one did not.
  using OnSnapshot = std::function<void(const ServerSnapshot*)>;
  void ask(OnSnapshot callback);
  // Forgets what was asked; nobody is called back.
  void forget();

 private:
  class Query;
  struct Snapshot;

  Query* free_query(std::size_t server, std::size_t model);

  os::EventLoop& loop_;
  Settings settings_;
  std::vector<std::unique_ptr<Query>> queries_;  // idle ones are used again
};

}  // namespace septet::measure
