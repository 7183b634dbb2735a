#include "serve/edge/grpc_stream.h"

#include <vector>

#include "inference/edge/grpc_codec.h"
#include "os/clock.h"

namespace septet::serve {

InferStream::InferStream(InferenceServer& server) : server_(server) { read_next(); }

void InferStream::read_next() {
  reading_ = std::make_unique<Exchange>();
  StartRead(&reading_->request);
}

void InferStream::OnReadDone(bool ok) {
  Exchange* exchange = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (!ok) {
      read_ended_ = true;
      advance(lock);
      return;
    }
    exchanges_.push_back(std::move(reading_));
    exchange = exchanges_.back().get();
    if (exchanges_.size() < kMostInFlight) {
      read_next();
    } else {
      read_paused_ = true;
    }
  }
  start(*exchange);
}

// The exchange stays in the queue until it is answered, so the callback may keep a reference.
void InferStream::start(Exchange& exchange) {
  auto request = inference::from_message(exchange.request);
  if (!request.ok()) {
    answer(exchange, request.error());
    return;
  }
  exchange.final_wanted = request->final_response_wanted;
  exchange.trace = server_.tracer().begin(request->model_name);
  if (exchange.trace) {
    exchange.trace->mark("GRPC_WAITREAD_END", os::now());
  }
  InferContext context{exchange.cancellation, exchange.trace};
  server_.infer(
      std::move(*request),
      [this, &exchange](const Outcome<inference::InferResponse>& response) {
        answer(exchange, response);
      },
      std::move(context));
}

void InferStream::answer(Exchange& exchange, const Outcome<inference::InferResponse>& response) {
  if (response.ok()) {
    inference::to_message(*response, *exchange.response.mutable_infer_response());
    if (exchange.final_wanted) {
      (*exchange.response.mutable_infer_response()->mutable_parameters())["triton_final_response"]
          .set_bool_param(true);
    }
  } else {
    exchange.response.set_error_message(response.error().message);
    exchange.response.mutable_infer_response()->set_id(exchange.request.id());
  }
  std::unique_lock lock(mutex_);
  exchange.answered = true;
  advance(lock);
}

void InferStream::OnWriteDone(bool ok) {
  std::unique_lock lock(mutex_);
  writing_ = false;
  write_failed_ = write_failed_ || !ok;
  if (const auto& trace = exchanges_.front()->trace) {
    trace->mark("GRPC_SEND_END", os::now());
  }
  exchanges_.pop_front();
  if (read_paused_) {
    read_paused_ = false;
    read_next();
  }
  advance(lock);
}

// Writes the next answer, or finishes once all is read and answered. When the client has gone,
// answers are dropped but still waited for: they hold references.
void InferStream::advance(std::unique_lock<std::mutex>& lock) {
  while (write_failed_ && !writing_ && !exchanges_.empty() && exchanges_.front()->answered) {
    exchanges_.pop_front();
  }
  if (!writing_ && !exchanges_.empty() && exchanges_.front()->answered) {
    writing_ = true;
    if (const auto& trace = exchanges_.front()->trace) {
      trace->mark("GRPC_SEND_START", os::now());
    }
    StartWrite(&exchanges_.front()->response);
    return;
  }
  if (read_ended_ && exchanges_.empty() && !finished_) {
    finished_ = true;
    lock.unlock();
    Finish(grpc::Status::OK);
  }
}

void InferStream::OnCancel() {
  std::vector<std::shared_ptr<Cancellation>> cancellations;
  {
    const std::lock_guard lock(mutex_);
    for (const std::unique_ptr<Exchange>& exchange : exchanges_) {
      cancellations.push_back(exchange->cancellation);
    }
  }
  // Without the lock: the answers come from within.
  for (const std::shared_ptr<Cancellation>& cancellation : cancellations) {
    cancellation->cancel();
  }
}

void InferStream::OnDone() {
  // gRPC hands the reactor back: it owns itself since the call began.
  const std::unique_ptr<InferStream> self(this);
}

}  // namespace septet::serve
