#include "support/http2_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/check.h"

namespace septet::test {

using balance::FieldList;
using balance::Http2Codec;
using balance::Http2Error;
using balance::StreamId;

namespace {

constexpr int kPatienceMs = 20'000;

}  // namespace

class Http2Client::Stream final : public balance::Http2Stream {
 public:
  explicit Stream(Http2Client& owner) : client(owner) {}

  bool on_field(std::string_view name, std::string_view value) override {
    if (name == ":status") {
      status_ = value;
    } else if (reply.status.empty()) {
      fields_.append(name).append(": ").append(value).append("\n");
    }
    return true;
  }
  void on_fields_end() override {
    if (status_.starts_with('1')) {
      reply.interim += status_;
    } else if (reply.status.empty()) {
      reply.status = status_;
      reply.fields = fields_;
    }
    status_.clear();
    fields_.clear();
  }
  void on_data(std::string_view bytes) override {
    reply.body += bytes;
    untaken += bytes.size();
    client.codec_.consume_connection(bytes.size());
    take();
  }
  void take() {
    if (client.takes_data_ && !closed) {
      client.codec_.consume_stream(id, std::exchange(untaken, 0));
    }
  }
  void on_end() override { reply.complete = true; }
  void on_closed(Http2Error error) override {
    reply.error = error;
    closed = true;
  }
  Supply supply(char* to, std::size_t room) override {
    using Then = Supply::Then;
    const std::size_t bytes = std::min(room, body.size() - sent);
    body.copy(to, bytes, sent);
    sent += bytes;
    return {bytes, sent < body.size() ? Then::kMore : finished ? Then::kEnd : Then::kLater};
  }

  Http2Client& client;
  StreamId id = 0;
  Reply reply;
  bool closed = false;
  std::size_t untaken = 0;
  std::string body;
  std::size_t sent = 0;
  bool finished = false;

 private:
  std::string status_;
  std::string fields_;
};

Http2Client::Http2Client(const os::Endpoint& endpoint, const Http2Codec::Limits& limits)
    : codec_(*this, Http2Codec::Role::kClient, limits) {
  Result<os::UniqueFd> fd = os::connect_to(endpoint, kPatienceMs);
  CHECK(fd.ok());
  fd_ = std::move(*fd);
}

Http2Client::~Http2Client() = default;

Http2Client::Fields Http2Client::head(std::string method, std::string path, Fields more) {
  Fields fields = {{":method", std::move(method)},
                   {":scheme", "http"},
                   {":authority", "gpu"},
                   {":path", std::move(path)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

Http2Client::Stream& Http2Client::stream(StreamId id) const { return *streams_.at(id); }

StreamId Http2Client::begin(const Fields& fields) {
  FieldList list;
  for (const auto& [name, value] : fields) {
    list.add(name, value);
  }
  auto made = std::make_unique<Stream>(*this);
  const StreamId id = codec_.submit_request(list, *made);
  CHECK(id != 0);
  made->id = id;
  streams_.emplace(id, std::move(made));
  return id;
}

void Http2Client::send(StreamId id, std::string_view body) {
  stream(id).body += body;
  codec_.more(id);
  flush();
}

void Http2Client::finish(StreamId id) {
  stream(id).finished = true;
  codec_.more(id);
  flush();
}

void Http2Client::reset(StreamId id) {
  codec_.reset(id, Http2Error::kCancel);
  flush();
}

void Http2Client::take_data(bool wanted) {
  takes_data_ = wanted;
  for (const auto& [id, one] : streams_) {
    one->take();
  }
  flush();
}

std::size_t Http2Client::sent(StreamId id) const { return stream(id).sent; }

void Http2Client::flush() {
  std::string out;
  while (fd_.valid()) {
    out.clear();
    if (!codec_.take_output(out, 1 << 16) || out.empty()) {
      return;
    }
    std::string_view rest = out;
    while (!rest.empty()) {
      const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) {
        pollfd waiting{fd_.get(), POLLOUT, 0};
        CHECK(poll(&waiting, 1, kPatienceMs) == 1);
        continue;
      }
      if (sent < 0) {
        return;  // what was said before still lies there to be read
      }
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
}

void Http2Client::turn(int wait_ms) {
  flush();
  pollfd waiting{fd_.get(), POLLIN, 0};
  if (!fd_.valid() || poll(&waiting, 1, wait_ms) != 1) {
    return;
  }
  std::array<char, 65536> buffer{};
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0 || !codec_.receive({buffer.data(), static_cast<std::size_t>(got)})) {
    fd_.reset();
    return;
  }
  flush();
}

const Http2Client::Reply& Http2Client::wait_for(StreamId id, std::size_t body_bytes) {
  Stream& one = stream(id);
  while (!one.closed && fd_.valid() && one.reply.body.size() < body_bytes) {
    turn(kPatienceMs);
  }
  return one.reply;
}

Http2Client::Reply Http2Client::wait(StreamId id) { return wait_for(id, std::string::npos); }

Http2Client::Reply Http2Client::ask(const Fields& fields, std::string_view body) {
  const StreamId id = begin(fields);
  stream(id).body = body;
  finish(id);
  return wait(id);
}

}  // namespace septet::test
