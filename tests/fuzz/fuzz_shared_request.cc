// An infer request's JSON, from a client: what is rewritten names bytes of its own tensors alone,
// as another parser reads it.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "balance/shared_request.h"
#include "base/check.h"

namespace {

using Json = nlohmann::json;
constexpr septet::balance::TensorPlace kPlace{"region-1", 4096, 96};

void check_parameters(const Json& parameters) {
  if (!parameters.is_object()) {
    return;
  }
  CHECK(!parameters.contains("binary_data_size"));
  const Json region = parameters.value("shared_memory_region", Json());
  if (region.is_null()) {
    return;
  }
  const auto size = parameters.value("shared_memory_byte_size", ~std::uint64_t{0});
  const auto offset = parameters.value("shared_memory_offset", std::uint64_t{0});
  CHECK(region == kPlace.region);
  CHECK(offset >= kPlace.offset && size <= kPlace.tensor_bytes);
  CHECK(offset + size <= kPlace.offset + kPlace.tensor_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  std::string out = "before";
  if (!septet::balance::append_shared_request(out, json, kPlace)) {
    CHECK(out == "before");
    return 0;
  }
  const Json original = Json::parse(json, nullptr, false);
  const Json changed = Json::parse(std::string_view(out).substr(6), nullptr, false);
  CHECK(original.is_discarded() == changed.is_discarded());
  if (!changed.is_object() || !changed.contains("inputs") || !changed["inputs"].is_array()) {
    return 0;
  }
  for (const Json& input : changed["inputs"]) {
    if (input.is_object() && input.contains("parameters")) {
      check_parameters(input["parameters"]);
    }
  }
  return 0;
}
