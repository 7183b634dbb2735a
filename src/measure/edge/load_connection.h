// LoadConnection: one connection of the load and its place in the feed of requests.
//
// Owned by the LoadDriver; the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "base/time.h"
#include "measure/edge/exchange_client.h"
#include "measure/edge/request_feed.h"
#include "measure/level_recorder.h"

namespace septet::measure {

class LoadConnection final : public ExchangeClient::Listener {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_answer(LoadConnection& connection, const AnsweredRequest& answer) = 0;
    // Must not send on this connection before it returns.
    virtual void on_failure(LoadConnection& connection, FailureKind kind,
                            const std::string& reason) = 0;
  };

  LoadConnection(os::EventLoop& loop, const ClientFactory& make_client,
                 const os::Endpoint& endpoint, std::size_t endpoint_index, RequestFeed& feed,
                 Owner& owner)
      : client_(make_client(loop, endpoint, *this,
                            feed.checks_answers() ? ExchangeClient::BodyUse::kKeep
                                                  : ExchangeClient::BodyUse::kDiscard)),
        feed_(feed),
        owner_(owner) {
    slot_.endpoint = endpoint_index;
  }

  bool busy() const { return client_->busy(); }
  // Sends the feed's next request, which was due at the instant. Not busy.
  void send(Instant due);
  // When the request in hand was really sent.
  Instant sent() const { return client_->sent(); }
  void time_out();
  void close();

  // What the owner keeps with a connection.
  Duration back_off{};           // closed loop: pause after the next failure
  os::EventLoop::Timer retry{};  // closed loop: armed while pausing
  bool in_load = false;          // closed loop: belongs to the requests in flight

 private:
  void on_answered(ExchangeClient& client, const ExchangeClient::Answer& answer) override;
  void on_failed(ExchangeClient& client, FailureKind kind, const std::string& reason) override;
  void report_failure(FailureKind kind, const std::string& reason);

  std::unique_ptr<ExchangeClient> client_;
  RequestFeed& feed_;
  RequestFeed::Slot slot_;
  Owner& owner_;
  Instant due_{};
};

}  // namespace septet::measure
