#include "measure/edge/request_feed.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "measure/edge/grpc_query.h"

namespace septet::measure {

namespace {

AnswerCheck::Form form_of(const RequestFeed::Settings& settings) {
  return !settings.grpc    ? AnswerCheck::Form::kHttp
         : settings.stream ? AnswerCheck::Form::kGrpcStream
                           : AnswerCheck::Form::kGrpc;
}

}  // namespace

RequestFeed::RequestFeed(Settings settings, InputData data)
    : settings_(std::move(settings)),
      streams_(std::move(data.requests)),
      answer_check_(form_of(settings_)),
      prng_(settings_.seed),
      next_sequence_id_(settings_.sequence.first_id) {
  for (const auto& stream : streams_) {
    CHECK(!stream.empty());
    first_request_.push_back(requests_.size());
    for (const inference::InferRequest& request : stream) {
      requests_.push_back(prepare(request));
    }
  }
  CHECK(!requests_.empty());
  for (const auto& stream : data.expected) {
    expected_.insert(expected_.end(), stream.begin(), stream.end());
  }
  if (std::all_of(expected_.begin(), expected_.end(),
                  [](const ExpectedOutputs& outputs) { return outputs.empty(); })) {
    expected_.clear();
  }
  CHECK(expected_.empty() || expected_.size() == requests_.size());
}

Result<Ok> RequestFeed::check(const Slot& slot, const ExchangeClient::Answer& answer) {
  if (expected_.empty() || expected_[slot.request].empty()) {
    return Ok{};
  }
  return answer_check_.check(expected_[slot.request], answer);
}

RequestFeed::Prepared RequestFeed::prepare(const inference::InferRequest& request) const {
  Prepared prepared;
  if (settings_.grpc) {
    prepared.body = infer_request_grpc(request, settings_.compression);
    prepared.heads.assign(settings_.endpoints.size(), settings_.path);
    return prepared;
  }
  const inference::V2Message message = written(request);
  prepared.json_bytes = message.json.size();
  prepared.body = message.json;
  for (const inference::Blob& tensor : message.binary) {
    prepared.body += tensor.text();
  }
  for (std::size_t i = 0; i < settings_.endpoints.size(); ++i) {
    prepared.heads.push_back(head_for(i, prepared.json_bytes, prepared.body.size()));
  }
  return prepared;
}

inference::V2Message RequestFeed::written(const inference::InferRequest& request) const {
  return settings_.json_inputs ? inference::write_request_as_json(request).value()
                               : inference::write_request(request);
}

std::string RequestFeed::head_for(std::size_t endpoint, std::size_t json_bytes,
                                  std::size_t bytes) const {
  HeaderFields headers = settings_.headers;
  if (settings_.json_inputs) {
    headers.emplace_back("Content-Type", "application/json");
  } else {
    headers.emplace_back("Content-Type", "application/octet-stream");
    headers.emplace_back(inference::kJsonLengthHeader, std::to_string(json_bytes));
  }
  return request_head("POST", settings_.path, settings_.endpoints[endpoint], headers, bytes);
}

ExchangeClient::Pieces RequestFeed::next(Slot& slot) {
  if (settings_.sequences) {
    return next_of_sequence(slot);
  }
  slot.request = turn_;
  const Prepared& request = requests_[turn_];
  turn_ = turn_ + 1 == requests_.size() ? 0 : turn_ + 1;
  return {request.heads[slot.endpoint], request.body, {}};
}

void RequestFeed::begin_sequence(Slot& slot) {
  const SequenceOptions& options = settings_.sequence;
  slot.sequence_id = next_sequence_id_;
  next_sequence_id_ =
      next_sequence_id_ >= options.last_id ? options.first_id : next_sequence_id_ + 1;
  slot.stream = next_stream_;
  next_stream_ = (next_stream_ + 1) % streams_.size();
  slot.step = 0;
  // A stream with data of its own is played to its end; a single made-up step is repeated.
  if (streams_[slot.stream].size() > 1) {
    slot.steps_left = streams_[slot.stream].size();
    return;
  }
  const double spread = options.length_variation_percent / 100 * (2 * prng_.uniform() - 1);
  slot.steps_left = static_cast<std::uint64_t>(
      std::max(1.0, std::round(static_cast<double>(options.length) * (1 + spread))));
}

ExchangeClient::Pieces RequestFeed::next_of_sequence(Slot& slot) {
  const bool starts = slot.steps_left == 0;
  if (starts) {
    begin_sequence(slot);
  }
  --slot.steps_left;
  slot.ends_sequence = slot.steps_left == 0;
  const std::size_t step = slot.step++ % streams_[slot.stream].size();
  slot.request = first_request_[slot.stream] + step;
  inference::InferRequest request = streams_[slot.stream][step];
  request.id = std::to_string(request_number_++);
  request.sequence_id = slot.sequence_id;
  request.sequence_start = starts;
  request.sequence_end = slot.ends_sequence;
  if (settings_.grpc) {
    slot.json = infer_request_grpc(request, settings_.compression);
    return {settings_.path, slot.json, {}};
  }
  slot.json = written(request).json;
  const Prepared& prepared = requests_[slot.request];
  const std::string_view tensors = std::string_view(prepared.body).substr(prepared.json_bytes);
  slot.head = head_for(slot.endpoint, slot.json.size(), slot.json.size() + tensors.size());
  return {slot.head, slot.json, tensors};
}

}  // namespace septet::measure
