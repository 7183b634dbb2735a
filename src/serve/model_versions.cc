#include "serve/model_versions.h"

#include <algorithm>

#include "base/text.h"

namespace septet::serve {

bool is_safe_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool is_safe_path(std::string_view path) {
  const std::vector<std::string_view> parts = split(path, '/');
  return std::all_of(parts.begin(), parts.end(), is_safe_name);
}

std::optional<std::int64_t> parse_version(std::string_view folder_name) {
  if (folder_name.empty() || folder_name.front() < '1' || folder_name.front() > '9') {
    return std::nullopt;
  }
  return parse_int(folder_name);
}

std::vector<std::int64_t> select_versions(const inference::VersionPolicy& policy,
                                          std::vector<std::int64_t> available) {
  using Kind = inference::VersionPolicy::Kind;
  std::sort(available.begin(), available.end());
  switch (policy.kind) {
    case Kind::kAll:
      break;
    case Kind::kLatest:
      if (available.size() > policy.latest) {
        available.erase(available.begin(),
                        available.end() - static_cast<std::ptrdiff_t>(policy.latest));
      }
      break;
    case Kind::kSpecific:
      std::erase_if(available, [&](std::int64_t version) {
        return std::find(policy.versions.begin(), policy.versions.end(), version) ==
               policy.versions.end();
      });
      break;
  }
  return available;
}

}  // namespace septet::serve
