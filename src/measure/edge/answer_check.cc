#include "measure/edge/answer_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.pb.h"
#include "measure/edge/padded_body.h"

namespace septet::measure {

namespace {

Error wrong(const std::string& what) {
  return make_error(ErrorKind::kFailed, "an answer is not what validation_data says: " + what);
}

Result<Ok> compare(const ExpectedOutputs& expected, const inference::InferResponse& response) {
  for (const auto& [name, bytes] : expected) {
    const auto output = std::find_if(
        response.outputs.begin(), response.outputs.end(),
        [&wanted = name](const inference::OutputTensor& one) { return one.name == wanted; });
    if (output == response.outputs.end()) {
      return wrong(fmt::format("it has no output '{}'", name));
    }
    const auto got = output->data.bytes;
    if (got.size() != bytes.size()) {
      return wrong(
          fmt::format("output '{}' has {} bytes instead of {}", name, got.size(), bytes.size()));
    }
    const auto [at, ignored] = std::mismatch(got.begin(), got.end(), bytes.begin());
    if (at != got.end()) {
      return wrong(fmt::format("output '{}' differs from byte {} on", name, at - got.begin()));
    }
  }
  return Ok{};
}

}  // namespace

Result<Ok> AnswerCheck::check(const ExpectedOutputs& expected,
                              const ExchangeClient::Answer& answer) {
  if (form_ == Form::kHttp) {
    const PaddedBody body(answer.body, answer.json_bytes);
    const auto response = reader_.read_response(body.view());
    return response ? compare(expected, *response) : wrong(response.error().message);
  }
  ::inference::ModelStreamInferResponse streamed;
  ::inference::ModelInferResponse& message = *streamed.mutable_infer_response();
  const int size = static_cast<int>(answer.body.size());
  const bool parsed = form_ == Form::kGrpcStream ? streamed.ParseFromArray(answer.body.data(), size)
                                                 : message.ParseFromArray(answer.body.data(), size);
  if (!parsed) {
    return wrong("it cannot be read");
  }
  // Parsing may have put the inner message elsewhere.
  const auto response = inference::from_message(streamed.infer_response());
  return response ? compare(expected, *response) : wrong(response.error().message);
}

}  // namespace septet::measure
