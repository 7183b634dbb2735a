// Names and versions in a model repository: which names are safe, which versions are served.
//
//   REPO/M/config.pbtxt    REPO/M/V/model.onnx    V is a positive number without leading zero
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "inference/model_config.h"

namespace septet::serve {

// A name that stays inside its folder: not empty, no '/', no NUL, not "." or "..", no dot in front.
bool is_safe_name(std::string_view name);
// A relative path that stays inside: each part is a safe name.
bool is_safe_path(std::string_view path);

// The version that a folder's name means; nothing for other names.
std::optional<std::int64_t> parse_version(std::string_view folder_name);

// Those of the available versions that the policy serves, ascending.
std::vector<std::int64_t> select_versions(const inference::VersionPolicy& policy,
                                          std::vector<std::int64_t> available);

}  // namespace septet::serve
