#include "measure/edge/infer_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "inference/v2_codec.h"
#include "measure/edge/http_client.h"
#include "measure/edge/padded_body.h"
#include "os/event_loop.h"

namespace septet::measure {
namespace {

// One connection with the request that it carries.
struct Lane {
  std::unique_ptr<HttpClient> client;
  std::size_t number = 0;
  std::string head;
  inference::V2Message message;
  os::EventLoop::Timer timer;
};

class ExchangeRunner final : public ExchangeClient::Listener {
 public:
  explicit ExchangeRunner(const InferExchange& exchange) : exchange_(exchange) {
    const std::size_t lanes =
        exchange.sending == Sending::kOneByOne ? 1 : std::min(exchange.requests, kMostConnections);
    for (std::size_t i = 0; i < lanes; ++i) {
      lanes_.push_back(std::make_unique<Lane>());
      lanes_.back()->client =
          std::make_unique<HttpClient>(loop_, exchange.endpoint, *this, HttpClient::BodyUse::kKeep);
    }
  }

  Result<Ok> run() {
    loop_.post([this] {
      for (const std::unique_ptr<Lane>& lane : lanes_) {
        send_next(*lane);
      }
    });
    if (exchange_.requests > 0) {
      loop_.run();
    }
    return result_;
  }

  void on_answered(ExchangeClient& client, const ExchangeClient::Answer& answer) override {
    Lane& lane = lane_of(client);
    loop_.cancel(lane.timer);
    const Result<Ok> taken = take(lane, answer);
    if (!taken) {
      end(taken.error());
    } else if (arrived_ == exchange_.requests) {
      loop_.stop();
    } else {
      send_next(lane);
    }
  }

  void on_failed(ExchangeClient& client, FailureKind kind, const std::string& reason) override {
    const bool nobody = kind == FailureKind::kConnect;
    end(nobody ? no_answer(client.endpoint(), reason) : failed_request(reason));
  }

 private:
  Error failed_request(const std::string& why) const {
    return make_error(
        ErrorKind::kFailed,
        fmt::format("failed sending {} infer request: {}",
                    exchange_.sending == Sending::kOneByOne ? "synchronous" : "asynchronous", why));
  }

  Lane& lane_of(const ExchangeClient& client) {
    return **std::find_if(lanes_.begin(), lanes_.end(), [&](const std::unique_ptr<Lane>& lane) {
      return lane->client.get() == &client;
    });
  }

  void send_next(Lane& lane) {
    if (next_ == exchange_.requests || !result_.ok()) {
      return;
    }
    lane.number = next_++;
    const Result<inference::InferRequest> request = exchange_.make_request(lane.number);
    if (!request) {
      end(request.error());
      return;
    }
    lane.message = inference::write_request(*request);
    HeaderFields headers = exchange_.headers;
    headers.emplace_back(inference::kJsonLengthHeader, std::to_string(lane.message.json.size()));
    headers.emplace_back("Content-Type", "application/octet-stream");
    lane.head = request_head(
        "POST", model_path(request->model_name, request->model_version) + "/infer",
        exchange_.endpoint, headers, lane.message.json.size() + lane.message.binary_bytes());
    lane.timer = loop_.call_after(exchange_.timeout, [this, &lane] {
      lane.client->fail(FailureKind::kTimeout,
                        fmt::format("no answer within {} s", to_seconds(exchange_.timeout)));
    });
    const std::string_view tensor =
        lane.message.binary.empty() ? std::string_view() : lane.message.binary.front().text();
    lane.client->send({lane.head, lane.message.json, tensor});
  }

  Result<Ok> take(const Lane& lane, const ExchangeClient::Answer& answer) {
    if (answer.status != 200) {
      return failed_request(error_text(answer.body));
    }
    const PaddedBody body(answer.body, answer.json_bytes);
    const auto response = reader_.read_response(body.view());
    if (!response) {
      return failed_request(response.error().message);
    }
    return exchange_.on_response(arrived_++, lane.number, *response);
  }

  void end(const Error& error) {
    if (result_.ok()) {
      result_ = error;
    }
    loop_.stop();
  }

  const InferExchange& exchange_;
  os::EventLoop loop_;
  inference::V2Reader reader_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::size_t next_ = 0;
  std::size_t arrived_ = 0;
  Result<Ok> result_ = Ok{};
};

}  // namespace

Result<Ok> run_infer_exchange(const InferExchange& exchange) {
  return ExchangeRunner(exchange).run();
}

}  // namespace septet::measure
