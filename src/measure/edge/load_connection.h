// LoadConnection: one connection of the load and its place in the feed of requests.
//
// Owned by the LoadDriver; the loop's thread.
#pragma once

#include <string>

#include "base/time.h"
#include "measure/edge/http_client.h"
#include "measure/edge/request_feed.h"
#include "measure/level_recorder.h"

namespace septet::measure {

class LoadConnection final : public HttpClient::Listener {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_answer(LoadConnection& connection, const AnsweredRequest& answer) = 0;
    // Must not send on this connection before it returns.
    virtual void on_failure(LoadConnection& connection, FailureKind kind,
                            const std::string& reason) = 0;
  };

  LoadConnection(os::EventLoop& loop, const os::Endpoint& endpoint, std::size_t endpoint_index,
                 RequestFeed& feed, Owner& owner)
      : client_(loop, endpoint, *this, HttpClient::BodyUse::kDiscard), feed_(feed), owner_(owner) {
    slot_.endpoint = endpoint_index;
  }

  bool busy() const { return client_.busy(); }
  // Sends the feed's next request, which was due at the instant. Not busy.
  void send(Instant due);
  // When the request in hand was really sent.
  Instant sent() const { return client_.sent(); }
  void time_out();
  void close();

  // What the owner keeps with a connection.
  Duration back_off{};           // closed loop: pause after the next failure
  os::EventLoop::Timer retry{};  // closed loop: armed while pausing
  bool in_load = false;          // closed loop: belongs to the requests in flight

 private:
  void on_answered(HttpClient& client, const HttpClient::Answer& answer) override;
  void on_failed(HttpClient& client, FailureKind kind, const std::string& reason) override;
  void report_failure(FailureKind kind, const std::string& reason);

  HttpClient client_;
  RequestFeed& feed_;
  RequestFeed::Slot slot_;
  Owner& owner_;
  Instant due_{};
};

}  // namespace septet::measure
