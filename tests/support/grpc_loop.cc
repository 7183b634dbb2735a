#include "support/grpc_loop.h"

#include <memory>

#include "balance/edge/http2_session.h"
#include "balance/grpc_route.h"
#include "base/check.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "os/clock.h"

namespace septet::test {

namespace {

using balance::FieldList;
using balance::Http2Codec;
using balance::Http2Error;
using balance::Http2Session;
using balance::Http2Stream;
using balance::StreamId;

class Loop;

class Connection final : public Http2Session::Owner {
 public:
  Connection(Loop& owner, os::EventLoop& event_loop)
      : loop(owner),
        session(event_loop, *this, Http2Codec::Role::kClient,
                {.stream_window = 1 << 22, .connection_window = 1 << 24}) {}

  Http2Stream* on_stream_opened(StreamId /*id*/) override { return nullptr; }
  bool on_frame(balance::Http2Frame /*frame*/, std::size_t /*bytes*/) override { return true; }
  void on_round_end() override;
  void on_connection_closed() override;

  Loop& loop;
  Http2Session session;
  std::map<StreamId, std::unique_ptr<Http2Stream>> calls;
  std::size_t ended = 0;  // calls to be replaced at the end of the round
};

class Loop {
 public:
  explicit Loop(const GrpcLoad& load) : load_(load) {
    for (const auto& [name, value] : {std::pair<const char*, std::string>{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", load.path},
                                      {":authority", "localhost"}}) {
      head_.add(name, value);
    }
    if (load.kind == GrpcLoad::Kind::kCall) {
      head_.add("te", "trailers");
      head_.add("content-type", "application/grpc");
    }
    for (const auto& [name, value] : load.fields) {
      head_.add(name, value);
    }
  }
  GrpcLoadResult run() {
    const Instant begin = os::now();
    for (std::size_t i = 0; i < load_.connections; ++i) {
      connect(load_.calls_each);
    }
    event_loop_.call_after(load_.give_up, [this] { event_loop_.stop(); });
    event_loop_.run();
    result_.elapsed = os::now() - begin;
    result_.failed += load_.calls - std::min(load_.calls, ended_);
    return std::move(result_);
  }
  void connect(std::size_t calls) {
    Result<os::UniqueFd> fd = os::start_connect(load_.target);
    CHECK(fd.ok());
    connections_.push_back(std::make_unique<Connection>(*this, event_loop_));
    Connection& connection = *connections_.back();
    CHECK(connection.session
              .adopt(std::move(*fd), load_.target.is_unix() ? Http2Session::Socket::kConnected
                                                            : Http2Session::Socket::kConnecting)
              .ok());
    start_calls(connection, calls);
  }
  void start_calls(Connection& connection, std::size_t count);
  void call_ended(Connection& connection, const std::string& status, Duration latency) {
    ++ended_;
    ++connection.ended;
    result_.answered += status.empty() ? 0 : 1;
    ++result_.statuses[status];
    if (status == (load_.kind == GrpcLoad::Kind::kCall ? "0" : "200")) {
      result_.latencies.push_back(latency);
    } else {
      ++result_.failed;
    }
    if (load_.on_ended) {
      load_.on_ended(ended_);
    }
    if (ended_ == load_.calls) {
      event_loop_.stop();
    }
  }
  const GrpcLoad& load() const { return load_; }
  GrpcLoadResult& result() { return result_; }

 private:
  const GrpcLoad& load_;
  os::EventLoop event_loop_;
  FieldList head_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  GrpcLoadResult result_;
};

class Call final : public Http2Stream {
 public:
  explicit Call(Connection& connection) : connection_(connection), begin_(os::now()) {}

  bool on_field(std::string_view name, std::string_view value) override {
    const bool is_call = connection_.loop.load().kind == GrpcLoad::Kind::kCall;
    if (name == (is_call ? "grpc-status" : ":status")) {
      status_ = value;
    } else if (name == "grpc-message") {
      connection_.loop.result().last_message = value;
    }
    return true;
  }
  void on_fields_end() override {}
  void on_data(std::string_view bytes) override {
    connection_.session.codec().consume_connection(bytes.size());
    connection_.session.codec().consume_stream(id, bytes.size());
    data_ += bytes;
  }
  void on_end() override {}
  void on_closed(Http2Error /*error*/) override {
    connection_.loop.result().last_reply = std::move(data_);
    connection_.loop.call_ended(connection_, status_, os::now() - begin_);
    connection_.calls.erase(id);
  }
  Supply supply(char* to, std::size_t room) override {
    const std::string& message = connection_.loop.load().message;
    const std::size_t bytes = std::min(room, message.size() - sent_);
    message.copy(to, bytes, sent_);
    sent_ += bytes;
    return {bytes, sent_ == message.size() ? Supply::Then::kEnd : Supply::Then::kMore};
  }

  StreamId id = 0;

 private:
  Connection& connection_;
  Instant begin_;
  std::size_t sent_ = 0;
  std::string status_;
  std::string data_;
};

void Loop::start_calls(Connection& connection, std::size_t count) {
  for (; count > 0 && begun_ < load_.calls; --count) {
    auto call = std::make_unique<Call>(connection);
    call->id = connection.session.codec().submit_request(head_, *call);
    if (call->id == 0) {  // the server has said goodbye
      connect(count);
      return;
    }
    ++begun_;
    const StreamId id = call->id;
    connection.calls.emplace(id, std::move(call));
  }
  connection.session.flush();
}

void Connection::on_round_end() {
  if (session.open() && ended > 0) {
    const std::size_t count = std::exchange(ended, 0);
    loop.start_calls(*this, count);
  }
}

void Connection::on_connection_closed() {
  const std::size_t lost = calls.size() + std::exchange(ended, 0);
  for (std::size_t i = calls.size(); i > 0; --i) {
    loop.call_ended(*this, "", Duration::zero());
  }
  ended = 0;
  calls.clear();
  if (lost > 0) {
    loop.connect(lost);
  }
}

}  // namespace

GrpcLoadResult run_grpc_load(const GrpcLoad& load) { return Loop(load).run(); }

std::string grpc_infer_message(const std::string& model, std::size_t bytes) {
  ::inference::ModelInferRequest request;
  request.set_model_name(model);
  request.add_raw_input_contents(std::string(bytes, 'x'));
  return balance::framed_message(request.SerializeAsString());
}

}  // namespace septet::test
