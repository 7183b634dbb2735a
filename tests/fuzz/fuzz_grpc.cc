// ModelInferRequest messages: any bytes that protobuf accepts must be read or refused.
#include <cstdint>

#include "base/check.h"
#include "inference/edge/grpc_codec.h"
#include "inference/edge/proto/grpc_service.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace codec = septet::inference;
  ::inference::ModelInferRequest message;
  if (message.ParseFromArray(data, static_cast<int>(size))) {
    const auto request = codec::from_message(message);
    if (request.ok()) {
      ::inference::ModelInferRequest again;
      codec::to_message(*request, again);
      const auto reread = codec::from_message(again);
      CHECK(reread.ok());
      CHECK(reread->inputs.size() == request->inputs.size());
      for (std::size_t i = 0; i < request->inputs.size(); ++i) {
        CHECK(reread->inputs[i].data.text() == request->inputs[i].data.text());
      }
    }
  }
  ::inference::ModelInferResponse response;
  if (response.ParseFromArray(data, static_cast<int>(size))) {
    static_cast<void>(codec::from_message(response));
  }
  return 0;
}
