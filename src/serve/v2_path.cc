#include "serve/v2_path.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/text.h"

namespace septet::serve {

namespace {

using Kind = V2Path::Kind;
using Segments = std::span<const std::string>;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Nothing when a '%' is not followed by two hex digits, or hides a NUL.
std::optional<std::string> decode(std::string_view segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') {
      text += segment[i];
      continue;
    }
    const int high = i + 2 < segment.size() ? hex_digit(segment[i + 1]) : -1;
    const int low = i + 2 < segment.size() ? hex_digit(segment[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) {
      return std::nullopt;
    }
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

bool is_version(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Behind /v2/models.
std::optional<V2Path> model_path(Segments rest) {
  if (rest.size() == 1 && rest[0] == "stats") {
    return V2Path{.kind = Kind::kAllStatistics};
  }
  V2Path path{.model = rest[0]};
  rest = rest.subspan(1);
  if (rest.size() == 2 && rest[0] == "trace" && rest[1] == "setting") {
    path.kind = Kind::kTraceSetting;
    return path;
  }
  if (rest.size() >= 2 && rest[0] == "versions") {
    if (!is_version(rest[1])) {
      return std::nullopt;
    }
    path.version = rest[1];
    rest = rest.subspan(2);
  }
  if (rest.empty()) {
    path.kind = Kind::kModelMetadata;
    return path;
  }
  if (rest.size() > 1) {
    return std::nullopt;
  }
  if (rest[0] == "infer") {
    path.kind = Kind::kInfer;
  } else if (rest[0] == "ready") {
    path.kind = Kind::kModelReady;
  } else if (rest[0] == "config") {
    path.kind = Kind::kModelConfig;
  } else if (rest[0] == "stats") {
    path.kind = Kind::kModelStatistics;
  } else {
    return std::nullopt;
  }
  return path;
}

// Behind /v2/repository; a repository's name may come first.
std::optional<V2Path> repository_path(Segments rest) {
  if (rest.back() == "index" && rest.size() <= 2) {
    return V2Path{.kind = Kind::kRepositoryIndex};
  }
  if (rest.size() == 4) {
    rest = rest.subspan(1);
  }
  if (rest.size() != 3 || rest[0] != "models") {
    return std::nullopt;
  }
  if (rest[2] == "load") {
    return V2Path{.kind = Kind::kRepositoryLoad, .model = rest[1]};
  }
  if (rest[2] == "unload") {
    return V2Path{.kind = Kind::kRepositoryUnload, .model = rest[1]};
  }
  return std::nullopt;
}

// Behind /v2/systemsharedmemory and /v2/cudasharedmemory.
std::optional<V2Path> memory_path(Segments rest, Kind status, Kind enter, Kind leave) {
  V2Path path;
  if (rest.size() == 3 && rest[0] == "region") {
    path.region = rest[1];
    rest = rest.subspan(2);
  }
  if (rest.size() != 1) {
    return std::nullopt;
  }
  if (rest[0] == "status") {
    path.kind = status;
  } else if (rest[0] == "register" && !path.region.empty()) {
    path.kind = enter;
  } else if (rest[0] == "unregister") {
    path.kind = leave;
  } else {
    return std::nullopt;
  }
  return path;
}

std::optional<V2Path> path_of(Segments all) {
  if (all.size() == 1) {
    return all[0] == "v2"        ? std::optional(V2Path{.kind = Kind::kServerMetadata})
           : all[0] == "metrics" ? std::optional(V2Path{.kind = Kind::kMetrics})
                                 : std::nullopt;
  }
  if (all.empty() || all[0] != "v2") {
    return std::nullopt;
  }
  const Segments rest = all.subspan(2);
  if (all[1] == "health" && rest.size() == 1) {
    return rest[0] == "live"    ? std::optional(V2Path{.kind = Kind::kLive})
           : rest[0] == "ready" ? std::optional(V2Path{.kind = Kind::kReady})
                                : std::nullopt;
  }
  if (all[1] == "logging" && rest.empty()) {
    return V2Path{.kind = Kind::kLogging};
  }
  if (all[1] == "trace" && rest.size() == 1 && rest[0] == "setting") {
    return V2Path{.kind = Kind::kTraceSetting};
  }
  if (rest.empty()) {
    return std::nullopt;
  }
  if (all[1] == "models") {
    return model_path(rest);
  }
  if (all[1] == "repository") {
    return repository_path(rest);
  }
  if (all[1] == "systemsharedmemory") {
    return memory_path(rest, Kind::kSystemMemoryStatus, Kind::kSystemMemoryRegister,
                       Kind::kSystemMemoryUnregister);
  }
  if (all[1] == "cudasharedmemory") {
    return memory_path(rest, Kind::kCudaMemoryStatus, Kind::kCudaMemoryRegister,
                       Kind::kCudaMemoryUnregister);
  }
  return std::nullopt;
}

}  // namespace

std::optional<V2Path> parse_v2_path(std::string_view target) {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with('/')) {
    return std::nullopt;
  }
  std::vector<std::string> segments;
  for (const std::string_view segment : split(target.substr(1), '/')) {
    auto text = decode(segment);
    if (!text || text->empty()) {
      return std::nullopt;
    }
    segments.push_back(std::move(*text));
  }
  return path_of(segments);
}

std::string_view method_of(Kind kind) {
  switch (kind) {
    case Kind::kInfer:
    case Kind::kRepositoryIndex:
    case Kind::kRepositoryLoad:
    case Kind::kRepositoryUnload:
    case Kind::kSystemMemoryRegister:
    case Kind::kSystemMemoryUnregister:
    case Kind::kCudaMemoryRegister:
    case Kind::kCudaMemoryUnregister:
      return "POST";
    case Kind::kTraceSetting:
    case Kind::kLogging:
      return "";
    case Kind::kLive:
    case Kind::kReady:
    case Kind::kServerMetadata:
    case Kind::kModelMetadata:
    case Kind::kModelReady:
    case Kind::kModelConfig:
    case Kind::kModelStatistics:
    case Kind::kAllStatistics:
    case Kind::kSystemMemoryStatus:
    case Kind::kCudaMemoryStatus:
    case Kind::kMetrics:
      break;
  }
  return "GET";
}

}  // namespace septet::serve
