#include "measure/edge/load_connection.h"

#include <fmt/format.h>

#include "measure/edge/model_query.h"

namespace septet::measure {

namespace {

FailureKind kind_of_status(unsigned status) {
  if (status == 503 || status == 429) {
    return FailureKind::kRefused;
  }
  if (status >= 500) {
    return FailureKind::kServer;
  }
  return status >= 400 ? FailureKind::kRejected : FailureKind::kProtocol;
}

}  // namespace

void LoadConnection::send(Instant due) {
  due_ = due;
  client_->send(feed_.next(slot_));
}

void LoadConnection::close() {
  client_->close();
  RequestFeed::abandon(slot_);
}

void LoadConnection::time_out() {
  client_->fail(FailureKind::kTimeout,
                fmt::format("no answer from {} in time", client_->endpoint().text()));
}

void LoadConnection::on_answered(ExchangeClient& client, const ExchangeClient::Answer& answer) {
  if (answer.status != 200) {
    report_failure(kind_of_status(answer.status),
                   fmt::format("{} answered {}: {}", client.endpoint().text(), answer.status,
                               error_text(answer.body)));
    return;
  }
  if (const Result<Ok> good = feed_.check(slot_, answer); !good.ok()) {
    report_failure(FailureKind::kWrong, good.error().message);
    return;
  }
  AnsweredRequest request;
  request.latency = answer.ended - due_;
  request.sent_latency = answer.ended - answer.sent;
  request.send = answer.send_ended - answer.sent;
  request.receive = answer.ended - answer.first_byte;
  request.ends_sequence = slot_.ends_sequence;
  request.times = {answer.sent, answer.ended, slot_.sequence_id};
  owner_.on_answer(*this, request);
}

void LoadConnection::on_failed(ExchangeClient& /*client*/, FailureKind kind,
                               const std::string& reason) {
  report_failure(kind, reason);
}

void LoadConnection::report_failure(FailureKind kind, const std::string& reason) {
  RequestFeed::abandon(slot_);
  owner_.on_failure(*this, kind, reason);
}

}  // namespace septet::measure
