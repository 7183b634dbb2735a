// RequestFeed: what each connection sends next, as bytes.
//
// Owned by the LoadGenerator; the loop's thread. Heads and bodies are made once and shared by all
// connections; only requests of sequences, whose JSON changes each time, are written when they are
// sent. A slot is one connection's place in the feed, and with sequence models one live sequence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "inference/v2_codec.h"
#include "measure/edge/answer_check.h"
#include "measure/edge/exchange_client.h"
#include "measure/edge/model_query.h"
#include "measure/infer_input.h"
#include "measure/message_compression.h"

namespace septet::measure {

struct SequenceOptions {
  std::uint64_t length = 20;  // steps of a sequence whose data is made up
  double length_variation_percent = 20;
  std::uint64_t first_id = 1;
  std::uint64_t last_id = UINT64_MAX;  // then first_id again
};

class RequestFeed {
 public:
  struct Slot {
    std::size_t endpoint = 0;
    // Of the live sequence; nothing left = the next request starts a new one.
    std::uint64_t sequence_id = 0;
    std::uint64_t steps_left = 0;
    std::size_t stream = 0;
    std::size_t step = 0;
    std::size_t request = 0;     // the number of the request in hand
    bool ends_sequence = false;  // the request in hand is its sequence's last
    // The text of a request that was written for this slot.
    std::string head;
    std::string json;
  };

  struct Settings {
    std::vector<os::Endpoint> endpoints;
    std::string path;  // of the infer call
    bool grpc = false;
    bool stream = false;       // gRPC's
    bool json_inputs = false;  // HTTP: every request can be written as JSON, and is
    MessageCompression compression = MessageCompression::kNone;  // gRPC's
    HeaderFields headers;  // HTTP; gRPC's metadata is the client's
    bool sequences = false;
    SequenceOptions sequence;
    std::uint64_t seed = 1;
  };

  // Every stream has at least one request.
  RequestFeed(Settings settings, InputData data);

  // The next request of the slot; the bytes live until the slot's next call.
  ExchangeClient::Pieces next(Slot& slot);
  // A request of the slot's sequence failed: what the server remembers is unknown, so the next
  // request starts a new sequence.
  static void abandon(Slot& slot) { slot.steps_left = 0; }

  // Whether any answer is to be checked, and so to be kept.
  bool checks_answers() const { return !expected_.empty(); }
  // Whether the good answer to the slot's request is the expected one.
  Result<Ok> check(const Slot& slot, const ExchangeClient::Answer& answer);

  // Bytes of the first request's body.
  std::size_t first_body_bytes() const { return requests_.front().body.size(); }

 private:
  struct Prepared {
    std::string body;  // JSON, then tensors
    std::size_t json_bytes = 0;
    std::vector<std::string> heads;  // one for each endpoint
  };

  Prepared prepare(const inference::InferRequest& request) const;
  inference::V2Message written(const inference::InferRequest& request) const;
  std::string head_for(std::size_t endpoint, std::size_t json_bytes, std::size_t bytes) const;
  ExchangeClient::Pieces next_of_sequence(Slot& slot);
  void begin_sequence(Slot& slot);

  Settings settings_;
  RequestStreams streams_;
  std::vector<Prepared> requests_;          // all steps of all streams
  std::vector<std::size_t> first_request_;  // of each stream, in requests_
  std::vector<ExpectedOutputs> expected_;   // of each request; empty = nothing is expected
  AnswerCheck answer_check_;
  std::size_t turn_ = 0;
  Prng prng_;
  std::uint64_t next_sequence_id_;
  std::size_t next_stream_ = 0;
  std::uint64_t request_number_ = 0;
};

}  // namespace septet::measure
