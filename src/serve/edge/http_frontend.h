// HttpFrontend: the v2 protocol's HTTP interface in front of an InferenceServer.
//
// Owned by main, called by the HTTP server's loop thread only.
#pragma once

#include <string>

#include "inference/v2_codec.h"
#include "serve/edge/http_server.h"
#include "serve/edge/inference_server.h"
#include "serve/restrictions.h"
#include "serve/v2_path.h"

namespace septet::serve {

class HttpFrontend : public HttpHandler {
 public:
  explicit HttpFrontend(InferenceServer& server, Restrictions restrictions = {})
      : server_(server), restrictions_(std::move(restrictions)) {}

  // From now on a proxy may put gRPC's calls into slots, too (inference/slot_call.h). Not for a
  // server that asks for a field of its own from gRPC's clients: it would not be seen here.
  void take_slot_calls() { takes_slot_calls_ = true; }

  void handle(std::shared_ptr<HttpExchange> exchange) override;
  std::size_t body_lead(const inference::HttpHead& head) override;

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  void respond_ready(HttpExchange& exchange) const;
  void answer(const Exchange& exchange, const V2Path& path);
  void infer(const Exchange& exchange, const V2Path& path);
  Outcome<inference::InferRequest> read_infer(const HttpExchange& exchange, const V2Path& path);
  Outcome<inference::InferRequest> read_raw(const HttpExchange& exchange, const V2Path& path);
  void server_metadata(const Exchange& exchange);
  void model_metadata(const Exchange& exchange, const V2Path& path);
  void model_config(const Exchange& exchange, const V2Path& path);
  void statistics(const Exchange& exchange, const V2Path& path);
  void repository_index(const Exchange& exchange);
  void repository_load(const Exchange& exchange, const V2Path& path);
  void repository_unload(const Exchange& exchange, const V2Path& path);

  InferenceServer& server_;
  Restrictions restrictions_;
  inference::V2Reader reader_;
  bool takes_slot_calls_ = false;
};

}  // namespace septet::serve
