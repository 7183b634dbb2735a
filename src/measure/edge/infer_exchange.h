// Sends a number of infer requests to a v2 server over HTTP and hands on the answers.
//
// Blocking; runs an event loop of its own until the last answer. Any thread.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "inference/tensor.h"
#include "measure/edge/model_query.h"
#include "os/endpoint.h"

namespace septet::measure {

enum class Sending {
  kOneByOne,  // the next request leaves when the last one is answered
  kTogether,  // up to kMostConnections requests in flight; answers in order of arrival
};

struct InferExchange {
  os::Endpoint endpoint;
  HeaderFields headers{};
  std::size_t requests = 0;
  Sending sending = Sending::kOneByOne;
  Duration timeout = seconds(60);  // of one request

  // Makes request `number` when it is its turn. An error ends the exchange.
  std::function<Result<inference::InferRequest>(std::size_t number)> make_request;
  // Takes the answer that came as the `arrival`-th. An error ends the exchange.
  std::function<Result<Ok>(std::size_t arrival, std::size_t number,
                           const inference::InferResponse& response)>
      on_response;
};

inline constexpr std::size_t kMostConnections = 16;

// The first error: of a request that could not be made, sent or understood, or the server's own
// words. kPrecondition when nothing answers.
Result<Ok> run_infer_exchange(const InferExchange& exchange);

}  // namespace septet::measure
