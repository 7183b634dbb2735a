// Restrictions: which groups of endpoints need a header to be used (Triton's restricted APIs).
//
// A value, set at start. Specifications read "API[,API...]:HEADER=VALUE"; the groups are health,
// metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "serve/v2_path.h"

namespace septet::serve {

class Restrictions {
 public:
  // kUsage for an unknown group (names the nearest), or a group restricted twice.
  [[nodiscard]] Result<Ok> add(std::string_view specification);

  // Finds a request's header by name.
  using HeaderLookup = std::function<std::optional<std::string_view>(const std::string& name)>;
  // The name of the header that is missing or wrong; nothing when the call is allowed.
  std::optional<std::string> missing_header(V2Path::Kind kind, const HeaderLookup& find) const;

 private:
  struct Rule {
    std::string header{};
    std::string value{};
  };
  std::map<std::string, Rule, std::less<>> rules_;
};

// The group that a call belongs to.
std::string_view group_of(V2Path::Kind kind);

}  // namespace septet::serve
