// AnswerCheck: whether an answer holds the outputs that the input file expects of it.
//
// Owned by the RequestFeed, used by the loop's thread.
#pragma once

#include "base/result.h"
#include "inference/v2_codec.h"
#include "measure/edge/exchange_client.h"
#include "measure/infer_input.h"

namespace septet::measure {

class AnswerCheck {
 public:
  enum class Form { kHttp, kGrpc, kGrpcStream };
  explicit AnswerCheck(Form form) : form_(form) {}

  // Compares bytes. kFailed names the output that differs or is missing.
  Result<Ok> check(const ExpectedOutputs& expected, const ExchangeClient::Answer& answer);

 private:
  Form form_;
  inference::V2Reader reader_;
};

}  // namespace septet::measure
