// The HTTP/2 codec as the proxy's clients reach it, and what is read from gRPC messages. The first
// byte chooses. A server's codec gets the bytes in pieces, answers every stream that ends, and may
// neither crash nor speak without being asked.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "balance/edge/http2_codec.h"
#include "balance/grpc_route.h"
#include "base/check.h"

namespace {

using namespace septet;           // NOLINT: a fuzz target is all about one namespace
using namespace septet::balance;  // NOLINT

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
    void on_fields_end() override { static_cast<void>(find_grpc_kind(fields.find(":path"))); }
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
  switch (data[0] % 4) {
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
    default:
      // Past the preface, which chance would not find.
      Server().run("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(bytes));
      break;
  }
  return 0;
}
