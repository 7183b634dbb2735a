// Which fields of config.pbtxt are refused, and why; private to this folder.
//
// The table is the one place that says so: docs/triton_compatibility.md repeats it, a test
// compares.
#pragma once

#include <span>
#include <string_view>

namespace septet::inference {

struct RefusedField {
  std::string_view field;  // "inference.ModelConfig.batch_input"
  std::string_view why;
};

std::span<const RefusedField> refused_fields();
// The reason, or empty when the field is supported.
std::string_view why_refused(std::string_view field);

}  // namespace septet::inference
