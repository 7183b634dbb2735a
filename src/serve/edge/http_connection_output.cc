// The answering half of HttpConnection: from a response to the next request or the end.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "inference/json_writer.h"
#include "inference/slot_message.h"
#include "os/clock.h"
#include "serve/edge/http_connection.h"

namespace septet::serve {

namespace {

// A client that was refused may still be sending; reading on for a while lets it see the answer.
constexpr Duration kLingerTime = seconds(2);
constexpr std::size_t kPartsPerWrite = 64;

}  // namespace

void HttpConnection::refuse(unsigned status, const std::string& reason) {
  keep_alive_ = false;
  buffer_ = {};
  state_ = State::kBusy;
  respond({.status = status, .body = inference::error_json(reason), .close = true});
}

void HttpConnection::respond(HttpResponse response) {
  if (state_ != State::kBusy) {
    return;
  }
  const bool to_head = exchange_ && exchange_->head().method == "HEAD";
  const bool grants_slots = exchange_ && exchange_->body_in_slot_;
  exchange_.reset();
  keep_alive_ = keep_alive_ && !response.close && !ending_;
  output_ = std::move(response);
  std::size_t length = output_.body.size();
  for (const inference::Blob& piece : output_.pieces) {
    length += piece.size();
  }
  output_head_.clear();
  inference::append_status_line(output_head_, output_.status);
  inference::append_field(output_head_, "Content-Type", output_.content_type);
  for (const auto& [name, value] : output_.fields) {
    inference::append_field(output_head_, name, value);
  }
  if (grants_slots) {
    inference::append_field(output_head_, inference::kSlotsField, inference::kSlotsVersion);
  }
  inference::append_field(output_head_, "Content-Length", length);
  if (!keep_alive_) {
    inference::append_field(output_head_, "Connection", "close");
  }
  output_head_ += "\r\n";
  output_parts_.clear();
  next_part_ = 0;
  const auto add = [&](const void* data, std::size_t size) {
    if (size > 0) {
      output_parts_.push_back({const_cast<void*>(data), size});
    }
  };
  add(output_head_.data(), output_head_.size());
  if (!to_head) {
    add(output_.body.data(), output_.body.size());
    for (const inference::Blob& piece : output_.pieces) {
      add(piece.bytes.data(), piece.size());
    }
  }
  state_ = State::kWriting;
  deadline_ = os::now() + server_.options_.write_timeout;
  flush();
}

void HttpConnection::flush() {
  while (next_part_ < output_parts_.size()) {
    const std::span<const iovec> left_parts = std::span(output_parts_).subspan(next_part_);
    const ssize_t sent =
        transport_.send(left_parts.first(std::min(left_parts.size(), kPartsPerWrite)));
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0) {
      errno == EAGAIN ? set_events(EPOLLOUT) : close();
      return;
    }
    deadline_ = os::now() + server_.options_.write_timeout;
    auto left = static_cast<std::size_t>(sent);
    while (left > 0) {
      iovec& part = output_parts_[next_part_];
      const std::size_t done = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + done;
      part.iov_len -= done;
      left -= done;
      next_part_ += part.iov_len == 0 ? 1 : 0;
    }
  }
  finish_response();
}

void HttpConnection::finish_response() {
  output_ = {};
  output_head_ = {};
  output_parts_ = {};
  if (!keep_alive_) {
    linger();
    return;
  }
  state_ = State::kIdle;
  deadline_ = os::now() + server_.options_.idle_timeout;
  set_events(kReading);
  if (!processing_ && !input_.empty()) {
    const std::string input = std::exchange(input_, {});
    process(input);
  }
  if (!processing_ && state_ == State::kIdle && transport_.has_received()) {
    read_input();
  }
}

void HttpConnection::linger() {
  transport_.finish_sending();
  state_ = State::kLingering;
  input_ = {};
  deadline_ = os::now() + kLingerTime;
  set_events(kReading);
}

}  // namespace septet::serve
