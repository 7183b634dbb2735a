#include "support/fake_grpc_replica.h"

#include <map>

#include "balance/edge/http2_session.h"
#include "base/check.h"

namespace septet::test {

using balance::FieldList;
using balance::Http2Codec;
using balance::Http2Error;
using balance::Http2Session;
using balance::Http2Stream;
using balance::StreamId;

class FakeGrpcReplica::Server final : public os::EventLoop::Watcher {
 public:
  Server(FakeGrpcReplica& owner, Script script) : owner_(owner), script_(std::move(script)) {}

  void listen(const os::Endpoint& endpoint) {
    Result<os::UniqueFd> fd = os::listen_on(endpoint);
    CHECK(fd.ok());
    listener_ = std::move(*fd);
    owner_.endpoint_ = endpoint.is_unix() ? endpoint : os::local_endpoint(listener_.get());
    CHECK(loop.watch(listener_.get(), EPOLLIN, *this).ok());
  }
  void on_ready(std::uint32_t /*events*/) override;

  os::EventLoop loop;

 private:
  class Connection;
  class Call;
  FakeGrpcReplica& owner_;
  Script script_;
  os::UniqueFd listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

class FakeGrpcReplica::Server::Connection final : public Http2Session::Owner {
 public:
  explicit Connection(Server& owner)
      : server(owner), session(owner.loop, *this, Http2Codec::Role::kServer, {}) {}

  Http2Stream* on_stream_opened(StreamId id) override;
  bool on_frame(balance::Http2Frame frame, std::size_t /*bytes*/) override {
    server.owner_.resets_ += frame == balance::Http2Frame::kReset ? 1 : 0;
    return true;
  }
  void on_round_end() override {
    if (wants_to_close) {
      session.close();
    }
    session.flush();
  }
  void on_connection_closed() override { calls.clear(); }

  Server& server;
  std::map<StreamId, std::unique_ptr<Call>> calls;
  Http2Session session;
  bool wants_to_close = false;
};

class FakeGrpcReplica::Server::Call final : public Http2Stream {
 public:
  Call(Connection& connection, StreamId id) : connection_(connection), id_(id) {}

  bool on_field(std::string_view name, std::string_view value) override {
    if (name == ":path") {
      call_.path = value;
    }
    call_.fields.append(name).append(": ").append(value).append("\n");
    return true;
  }
  void on_fields_end() override {
    echoes_ = call_.path.find("Stream") != std::string::npos;
    if (echoes_) {
      begin("");
    }
  }
  void on_data(std::string_view bytes) override {
    codec().consume_connection(bytes.size());
    codec().consume_stream(id_, bytes.size());
    (echoes_ ? out_ : call_.message).append(bytes);
    codec().more(id_);
  }
  void on_end() override {
    ended_ = true;
    if (!echoes_) {
      answer(connection_.server.script_(call_));
    }
    codec().more(id_);
  }
  void on_closed(Http2Error /*error*/) override { connection_.calls.erase(id_); }
  Supply supply(char* to, std::size_t room) override {
    const std::size_t bytes = std::min(room, out_.size() - sent_);
    out_.copy(to, bytes, sent_);
    sent_ += bytes;
    if (sent_ < out_.size()) {
      return {bytes, Supply::Then::kMore};
    }
    if (!ended_) {
      return {bytes, Supply::Then::kLater};
    }
    FieldList trailers;
    trailers.add("grpc-status", status_);
    codec().submit_trailers(id_, trailers);
    return {bytes, Supply::Then::kTrailers};
  }

 private:
  Http2Codec& codec() { return connection_.session.codec(); }
  void begin(std::string_view message) {
    out_ = message;
    FieldList head;
    head.add(":status", "200");
    head.add("content-type", "application/grpc");
    codec().submit_response(id_, head, Http2Codec::Body::kFollows);
  }
  void answer(const FakeCallAnswer& answer) {
    status_ = answer.status;
    switch (answer.then) {
      case FakeCallAnswer::Then::kReply:
        begin(answer.message);
        break;
      case FakeCallAnswer::Then::kReset:
        codec().reset(id_, Http2Error::kInternal);
        break;
      case FakeCallAnswer::Then::kRefuse:
        codec().reset(id_, Http2Error::kRefusedStream);
        break;
      case FakeCallAnswer::Then::kClose:
        connection_.wants_to_close = true;
        break;
      case FakeCallAnswer::Then::kSilence:
        break;
    }
  }

  Connection& connection_;
  StreamId id_;
  FakeCall call_;
  bool echoes_ = false;
  bool ended_ = false;
  std::string out_;
  std::size_t sent_ = 0;
  std::string status_ = "0";
};

Http2Stream* FakeGrpcReplica::Server::Connection::on_stream_opened(StreamId id) {
  ++server.owner_.calls_;
  return calls.emplace(id, std::make_unique<Call>(*this, id)).first->second.get();
}

void FakeGrpcReplica::Server::on_ready(std::uint32_t /*events*/) {
  os::UniqueFd fd = os::accept_from(listener_.get());
  if (fd.valid()) {
    ++owner_.connections_;
    connections_.push_back(std::make_unique<Connection>(*this));
    CHECK(connections_.back()->session.adopt(std::move(fd), Http2Session::Socket::kConnected).ok());
    connections_.back()->session.flush();
  }
}

FakeGrpcReplica::FakeGrpcReplica(const os::Endpoint& listen, Script script)
    : server_(std::make_unique<Server>(*this, std::move(script))) {
  server_->listen(listen);
  thread_ = std::thread([this] { server_->loop.run(); });
}

FakeGrpcReplica::~FakeGrpcReplica() {
  server_->loop.stop();
  thread_.join();
  if (endpoint_.is_unix()) {
    ::unlink(endpoint_.unix_path.c_str());
  }
}

}  // namespace septet::test
