// The HTTP/2 codec as the proxy's clients reach it, and what is read from gRPC messages. The first
// byte chooses. A server's codec gets the bytes in pieces, answers every stream that ends, and may
// neither crash nor speak without being asked. Heads of ordinary requests, those of frames and any
// list of fields, are refused or mean the same to the parser of HTTP/1.1.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "balance/edge/http2_codec.h"
#include "balance/forwarded_head.h"
#include "balance/grpc_route.h"
#include "balance/http2_head.h"
#include "base/check.h"

namespace {

using namespace septet;           // NOLINT: a fuzz target is all about one namespace
using namespace septet::balance;  // NOLINT

void check_head(const FieldList& fields) {
  std::string memory;
  inference::HttpHead head;
  if (read_http2_head(fields, memory, head)) {
    return;
  }
  std::string text;
  append_request_head(text, head, std::nullopt);
  inference::HttpHeadParser parser({.max_head_bytes = 1 << 20});
  inference::HttpHead again;
  const inference::HeadResult result = parser.parse_request(text, again);
  CHECK(result.state == inference::HeadResult::State::kComplete);
  CHECK(result.head_bytes == text.size() && again.framing == inference::BodyFraming::kNone);
  CHECK(again.method == head.method && again.target == head.target);
  CHECK(again.fields.size() <= head.fields.size());
  std::string host(again.find("host").value_or(""));
  CHECK(host == fields.find(":authority") || host == fields.find("host"));
}

// Lines of name, tab, value; so that a field holds every byte but those.
void check_lines(std::string_view text) {
  FieldList fields;
  while (!text.empty() && fields.size() < 100) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t tab = std::min(line.find('\t'), line.size());
    fields.add(line.substr(0, tab), line.substr(std::min(tab + 1, line.size())));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  check_head(fields);
}

class Server final : public Http2Codec::Owner {
 public:
  Http2Stream* on_stream_opened(StreamId id) override {
    if (streams_.size() >= 8) {
      return nullptr;
    }
    return streams_.emplace(id, std::make_unique<Stream>(*this, id)).first->second.get();
  }
  bool on_frame(Http2Frame frame, std::size_t bytes) override {
    return guard_.admit(Instant{}, frame, bytes);
  }
  void run(std::string_view bytes) {
    std::string out;
    for (std::size_t piece = 1; !bytes.empty(); piece = piece * 2 + 1) {
      const bool good = codec_.receive(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      out.clear();
      if (!codec_.take_output(out, 1 << 16) || !good || codec_.finished()) {
        return;
      }
    }
  }

 private:
  struct Stream final : Http2Stream {
    Stream(Server& server, StreamId stream) : owner(server), id(stream) {}
    bool on_field(std::string_view name, std::string_view value) override {
      fields.add(name, value);
      return fields.bytes() <= 4096 && fields.size() <= 100;
    }
    void on_fields_end() override {
      static_cast<void>(find_grpc_kind(fields.find(":path")));
      if (!is_grpc(fields)) {
        check_head(fields);
      }
    }
    void on_data(std::string_view bytes) override {
      CHECK(body.size() + bytes.size() <= 65535 + 65535);  // no more than its windows
      body += bytes;
      owner.codec_.consume_connection(bytes.size());
    }
    void on_end() override {
      CHECK(!ended);
      ended = true;
      FieldList head;
      head.add(":status", "200");
      owner.codec_.submit_response(id, head, Http2Codec::Body::kFollows);
    }
    void on_closed(Http2Error /*error*/) override { owner.streams_.erase(id); }
    Supply supply(char* to, std::size_t room) override {
      const std::size_t bytes = std::min(room, body.size() - sent);
      body.copy(to, bytes, sent);
      sent += bytes;
      return {bytes, sent == body.size() ? Supply::Then::kEnd : Supply::Then::kMore};
    }
    Server& owner;
    StreamId id;
    FieldList fields;
    std::string body;
    std::size_t sent = 0;
    bool ended = false;
  };

  FloodGuard guard_{Instant{}};
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  Http2Codec codec_{*this, Http2Codec::Role::kServer, {}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0: {
      const std::string_view model = peek_model(bytes);
      CHECK(model.empty() || (model.data() >= bytes.data() &&
                              model.data() + model.size() <= bytes.data() + bytes.size()));
      break;
    }
    case 1:
      if (const auto timeout = parse_grpc_timeout(bytes)) {
        CHECK(*timeout >= Duration::zero() && parse_grpc_timeout(grpc_timeout_text(*timeout)));
      }
      grpc_message_text(bytes);
      break;
    case 2:
      Server().run(bytes);
      break;
    case 3:
      // Past the preface, which chance would not find.
      Server().run("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(bytes));
      break;
    default:
      check_lines(bytes);
      break;
  }
  return 0;
}
