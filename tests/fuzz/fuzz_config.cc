// config.pbtxt: what is accepted must survive its own JSON, and completing must not crash.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "inference/edge/config_document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using septet::inference::ConfigDocument;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto document = ConfigDocument::from_text(text, "config.pbtxt", "m");
  if (!document.ok()) {
    CHECK(!document.error().message.empty());
    return 0;
  }
  document->complete_defaults();
  const auto again = ConfigDocument::from_json(document->to_json(), "m");
  // NaN and infinity have a text form and no JSON form; all else must come back the same.
  if (again.ok()) {
    CHECK(again->to_json() == document->to_json());
  }
  septet::inference::ModelSignature signature;
  signature.inputs.push_back({"x", septet::inference::Datatype::kFp32, {-1, 4}});
  signature.outputs.push_back({"y", septet::inference::Datatype::kFp32, {-1, 2}});
  static_cast<void>(document->complete(signature));
  return 0;
}
