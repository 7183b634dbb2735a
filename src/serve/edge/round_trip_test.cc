// Every datatype through every form in which HTTP and gRPC carry it, and every error of the
// protocol by the status that each of the two gives it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <limits>

#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using inference::InferRequest;
using inference::InferResponse;
using inference::InputTensor;
using test_support::BothInterfaces;
using test_support::HttpReply;
using test_support::read_reply;
using ::testing::HasSubstr;
namespace proto = ::inference;

constexpr std::array kAllTypes = {
    Datatype::kBool, Datatype::kUint8, Datatype::kUint16, Datatype::kUint32, Datatype::kUint64,
    Datatype::kInt8, Datatype::kInt16, Datatype::kInt32,  Datatype::kInt64,  Datatype::kFp16,
    Datatype::kFp32, Datatype::kFp64,  Datatype::kBytes,  Datatype::kBf16};

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<std::byte> extremes() {
  using Limits = std::numeric_limits<T>;
  return bytes_of<T>({Limits::lowest(), T{0}, T{1}, Limits::max()});
}

// Four elements: the type's limits, zero and one.
std::vector<std::byte> four_values(Datatype datatype) {
  switch (datatype) {
    case Datatype::kBool:
      return bytes_of<std::uint8_t>({0, 1, 1, 0});
    case Datatype::kUint8:
      return extremes<std::uint8_t>();
    case Datatype::kUint16:
      return extremes<std::uint16_t>();
    case Datatype::kUint32:
      return extremes<std::uint32_t>();
    case Datatype::kUint64:
      return extremes<std::uint64_t>();
    case Datatype::kInt8:
      return extremes<std::int8_t>();
    case Datatype::kInt16:
      return extremes<std::int16_t>();
    case Datatype::kInt32:
      return extremes<std::int32_t>();
    case Datatype::kInt64:
      return extremes<std::int64_t>();
    case Datatype::kFp16:
    case Datatype::kBf16:
      return bytes_of<std::uint16_t>({0x3c00, 0xbc00, 0x0000, 0x7bff});
    case Datatype::kFp32:
      return extremes<float>();
    case Datatype::kFp64:
      return extremes<double>();
    case Datatype::kBytes: {
      std::vector<std::byte> bytes;
      for (const char* text : {"", "a", "\"gr\xc3\xbc\xc3\x9f\\\n", "0123456789"}) {
        inference::append_bytes_element(bytes, text);
      }
      return bytes;
    }
    case Datatype::kInvalid:
      break;
  }
  return {};
}

template <typename T, typename Repeated>
void unpack(std::span<const std::byte> bytes, Repeated* to) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    to->Add(value);
  }
}

// The elements in the typed field that the protocol names for the datatype.
void fill_contents(Datatype datatype, std::span<const std::byte> bytes,
                   proto::InferTensorContents& to) {
  switch (datatype) {
    case Datatype::kBool:
      return unpack<bool>(bytes, to.mutable_bool_contents());
    case Datatype::kUint8:
      return unpack<std::uint8_t>(bytes, to.mutable_uint_contents());
    case Datatype::kUint16:
      return unpack<std::uint16_t>(bytes, to.mutable_uint_contents());
    case Datatype::kUint32:
      return unpack<std::uint32_t>(bytes, to.mutable_uint_contents());
    case Datatype::kUint64:
      return unpack<std::uint64_t>(bytes, to.mutable_uint64_contents());
    case Datatype::kInt8:
      return unpack<std::int8_t>(bytes, to.mutable_int_contents());
    case Datatype::kInt16:
      return unpack<std::int16_t>(bytes, to.mutable_int_contents());
    case Datatype::kInt32:
      return unpack<std::int32_t>(bytes, to.mutable_int_contents());
    case Datatype::kInt64:
      return unpack<std::int64_t>(bytes, to.mutable_int64_contents());
    case Datatype::kFp32:
      return unpack<float>(bytes, to.mutable_fp32_contents());
    case Datatype::kFp64:
      return unpack<double>(bytes, to.mutable_fp64_contents());
    case Datatype::kBytes: {
      const auto elements = inference::split_bytes_elements(bytes);
      for (const std::string_view element : elements.value()) {
        to.add_bytes_contents(std::string(element));
      }
      return;
    }
    case Datatype::kInvalid:
    case Datatype::kFp16:
    case Datatype::kBf16:
      return;
  }
}

bool has_json_form(Datatype datatype) {
  return datatype != Datatype::kFp16 && datatype != Datatype::kBf16;
}

class EveryDatatype : public BothInterfaces {
 protected:
  void SetUp() override {
    for (const Datatype datatype : kAllTypes) {
      server_.add_copy(name_of(datatype), inference::config_name(datatype));
    }
    start();
  }

  static std::string name_of(Datatype datatype) {
    return fmt::format("copy_{}", inference::wire_name(datatype));
  }

  static InferRequest request(Datatype datatype) {
    InferRequest request{.model_name = name_of(datatype), .id = "r"};
    request.binary_outputs = true;
    request.inputs.push_back({.name = "IN",
                              .datatype = datatype,
                              .shape = {4},
                              .data = inference::own_bytes(four_values(datatype))});
    return request;
  }

  static void expect_same(const inference::Outcome<InferResponse>& got, Datatype datatype) {
    ASSERT_TRUE(got.ok()) << wire_name(datatype) << ": " << got.error().message;
    EXPECT_EQ(got->id, "r");
    EXPECT_EQ(got->model_name, name_of(datatype));
    ASSERT_EQ(got->outputs.size(), 1U);
    EXPECT_EQ(got->outputs[0].datatype, datatype);
    EXPECT_EQ(got->outputs[0].shape, Shape({4}));
    EXPECT_EQ(got->outputs[0].data.text(), inference::own_bytes(four_values(datatype)).text())
        << wire_name(datatype);
  }
};

TEST_F(EveryDatatype, ComesBackUnchangedAsBytesOverHttp) {
  for (const Datatype datatype : kAllTypes) {
    expect_same(read_reply(infer_over_http(request(datatype))), datatype);
  }
}

TEST_F(EveryDatatype, ComesBackUnchangedAsJsonOrIsRefusedInIt) {
  for (const Datatype datatype : kAllTypes) {
    InferRequest sent = request(datatype);
    sent.binary_outputs = false;
    const auto message = write_request_as_json(sent);
    ASSERT_EQ(message.ok(), has_json_form(datatype)) << wire_name(datatype);
    if (message.ok()) {
      const HttpReply reply = post_infer(sent, *message);
      EXPECT_FALSE(reply.fields.contains("inference-header-content-length"));
      expect_same(read_reply(reply), datatype);
    } else {
      EXPECT_THAT(infer_over_http(sent).body, HasSubstr("via JSON is not supported"));
    }
  }
}

TEST_F(EveryDatatype, ComesBackUnchangedAsRawContentsOverGrpc) {
  for (const Datatype datatype : kAllTypes) {
    proto::ModelInferResponse response;
    const grpc::Status status = infer_over_grpc(request(datatype), response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    expect_same(inference::from_message(response), datatype);
  }
}

TEST_F(EveryDatatype, ComesBackUnchangedFromTypedContentsOverGrpcOrIsRefusedInThem) {
  for (const Datatype datatype : kAllTypes) {
    proto::ModelInferRequest message;
    inference::to_message(request(datatype), message);
    message.clear_raw_input_contents();
    fill_contents(datatype, four_values(datatype), *message.mutable_inputs(0)->mutable_contents());
    proto::ModelInferResponse response;

    const grpc::Status status = infer_over_grpc(message, response);

    ASSERT_EQ(status.ok(), has_json_form(datatype)) << wire_name(datatype);
    if (status.ok()) {
      expect_same(inference::from_message(response), datatype);
    } else {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    }
  }
}

TEST_F(EveryDatatype, ANumberOutsideItsTypeIsRefusedByBoth) {
  for (const Datatype datatype : {Datatype::kInt8, Datatype::kUint8, Datatype::kInt16}) {
    proto::ModelInferRequest message;
    inference::to_message(request(datatype), message);
    message.clear_raw_input_contents();
    proto::InferTensorContents& contents = *message.mutable_inputs(0)->mutable_contents();
    for (int i = 0; i < 4; ++i) {
      contents.add_int_contents(70'000);
      contents.add_uint_contents(70'000);
    }
    proto::ModelInferResponse response;
    const std::string body = fmt::format(
        R"({{"inputs":[{{"name":"IN","datatype":"{}","shape":[4],"data":[0,0,0,70000]}}]}})",
        wire_name(datatype));

    const grpc::Status status = infer_over_grpc(message, response);
    const HttpReply reply = client_->post("/v2/models/" + name_of(datatype) + "/infer", body);

    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << wire_name(datatype);
    EXPECT_EQ(reply.status, 400U) << wire_name(datatype);
  }
}

// One way to make the server fail, asked of both interfaces.
class EveryError : public BothInterfaces {
 protected:
  static InferRequest copy(const std::string& model, std::int64_t count = 1) {
    InferRequest request{.model_name = model, .id = "e"};
    request.binary_outputs = true;
    request.inputs.push_back(
        {.name = "IN",
         .datatype = Datatype::kUint8,
         .shape = {count},
         .data = inference::own_text(std::string(static_cast<std::size_t>(count), 'x'))});
    return request;
  }

  // The text of both, which must be the same.
  std::string expect_infer_fails(const InferRequest& request, unsigned http_code,
                                 grpc::StatusCode grpc_code) {
    const HttpReply reply = infer_over_http(request);
    proto::ModelInferResponse response;
    const grpc::Status status = infer_over_grpc(request, response);
    EXPECT_EQ(reply.status, http_code) << reply.body;
    EXPECT_EQ(reply.fields.at("content-type"), "application/json");
    EXPECT_EQ(status.error_code(), grpc_code) << status.error_message();
    const std::string text = read_reply(reply).error().message;
    EXPECT_EQ(text, status.error_message());
    return text;
  }
};

TEST_F(EveryError, ABadArgument) {
  server_.add_copy("copy", "TYPE_UINT8");
  start();
  InferRequest wrong_type = copy("copy");
  wrong_type.inputs[0].datatype = Datatype::kInt8;
  InferRequest wrong_name = copy("copy");
  wrong_name.inputs[0].name = "NO";
  InferRequest none = copy("copy");
  none.inputs.clear();
  InferRequest twice = copy("copy");
  twice.inputs.push_back(twice.inputs[0]);
  InferRequest no_output = copy("copy");
  no_output.outputs.push_back({.name = "NO", .binary = true});
  InferRequest short_data = copy("copy");
  short_data.inputs[0].shape = {2};
  const auto bad = grpc::StatusCode::INVALID_ARGUMENT;

  EXPECT_EQ(expect_infer_fails(wrong_type, 400, bad),
            "[request id: e] inference input 'IN' data-type is 'INT8', model expects 'UINT8' for "
            "'copy'");
  EXPECT_THAT(expect_infer_fails(none, 400, bad),
              HasSubstr("expected 1 inputs but got 0 inputs for model 'copy'"));
  for (const InferRequest& request : {wrong_name, twice, no_output, short_data}) {
    EXPECT_THAT(expect_infer_fails(request, 400, bad), HasSubstr("[request id: e] "));
  }
}

TEST_F(EveryError, AnUnknownModelAndAnUnknownVersion) {
  server_.add_copy("copy", "TYPE_UINT8");
  start();
  proto::ModelInferRequest message;
  inference::to_message(copy("copy"), message);
  message.set_model_version("7");
  proto::ModelInferResponse response;

  EXPECT_EQ(expect_infer_fails(copy("none"), 404, grpc::StatusCode::NOT_FOUND),
            "Request for unknown model: 'none' is not found");
  EXPECT_EQ(infer_over_grpc(message, response).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(client_->get("/v2/models/copy/versions/7").status, 404U);
}

TEST_F(EveryError, AModelThatIsNotReady) {
  server_.add_copy("gone", "TYPE_UINT8");
  start({.control = InferenceServerOptions::Control::kExplicit});
  ASSERT_EQ(client_->post("/v2/repository/models/gone/unload", "").status, 200U);

  expect_infer_fails(copy("gone"), 503, grpc::StatusCode::UNAVAILABLE);
}

TEST_F(EveryError, AFailingEngine) {
  server_.add_copy("bad", "TYPE_UINT8", "", "fail");
  start();

  EXPECT_EQ(expect_infer_fails(copy("bad"), 500, grpc::StatusCode::INTERNAL),
            "[request id: e] the engine failed as told");
}

TEST_F(EveryError, WhatIsNotOffered) {
  start();
  proto::CudaSharedMemoryRegisterRequest request;
  request.set_name("r");
  proto::CudaSharedMemoryRegisterResponse response;

  const grpc::Status status = call(&Stub::CudaSharedMemoryRegister, request, response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(client_->post("/v2/cudasharedmemory/region/r/register", "{}").status, 501U);
}

TEST_F(EveryError, ARestrictedCallWithoutItsHeader) {
  server_.add_copy("copy", "TYPE_UINT8");
  start({}, "inference:key=secret");
  proto::ModelInferResponse response;

  EXPECT_EQ(infer_over_http(copy("copy")).status, 403U);
  EXPECT_EQ(infer_over_grpc(copy("copy"), response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(post_infer(copy("copy"), write_request(copy("copy")), "key: secret\r\n").status, 200U);
  EXPECT_EQ(client_->get("/v2/models/copy").status, 200U);
}

TEST_F(EveryError, APathOrMethodThatIsNone) {
  start();
  EXPECT_EQ(call_by_name("Nothing").error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(call_by_name("ServerLive").error_code(), grpc::StatusCode::OK);
  EXPECT_EQ(client_->get("/v2/nothing").status, 404U);
  EXPECT_EQ(client_->post("/v2/health/live", "").status, 405U);
}

}  // namespace
}  // namespace septet::serve
