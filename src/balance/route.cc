#include "balance/route.h"

#include <array>
#include <cstddef>

namespace septet::balance {

namespace {

// The pieces of "/v2/a/b/c" behind "/v2/", at most so many; the last holds what is left.
struct Pieces {
  std::array<std::string_view, 6> text;
  std::size_t count = 0;
  std::string_view operator[](std::size_t index) const {
    return index < count ? text[index] : std::string_view{};
  }
};

Pieces cut(std::string_view path) {
  Pieces pieces;
  while (pieces.count + 1 < pieces.text.size()) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) {
      break;
    }
    pieces.text[pieces.count++] = path.substr(0, slash);
    path.remove_prefix(slash + 1);
  }
  pieces.text[pieces.count++] = path;
  return pieces;
}

RouteKind settings(std::string_view method) {
  return method == "POST" ? RouteKind::kEveryReplica : RouteKind::kAnyReplica;
}

// models/M[/versions/V][/verb]
Route model_route(std::string_view method, const Pieces& path) {
  if (path.count == 2 && path[1] == "stats") {
    return {RouteKind::kStatistics, {}, {}};
  }
  Route route{RouteKind::kInfer, path[1], {}};
  std::size_t next = 2;
  if (path[2] == "versions") {
    route.version = path[3];
    next = 4;
  }
  const std::string_view verb = path[next];
  if (method == "GET" && (path.count == next || verb == "config" || verb == "ready")) {
    route.kind = RouteKind::kAnyReplica;
  } else if (method == "GET" && verb == "stats") {
    route.kind = RouteKind::kStatistics;
  } else if (verb == "trace" && path[next + 1] == "setting") {
    route.kind = settings(method);
  }
  return route;
}

Route repository_route(const Pieces& path) {
  const std::size_t next = path[1] == "index" || path[1] == "models" ? 1 : 2;  // repository/R/...
  if (path[next] == "index") {
    return {RouteKind::kRepositoryIndex, {}, {}};
  }
  return {RouteKind::kEveryReplica, path[next + 1], {}};
}

}  // namespace

Route find_route(std::string_view method, std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (path == "/metrics" && method == "GET") {
    return {RouteKind::kMetrics, {}, {}};
  }
  if (path == "/septet/status" && method == "GET") {
    return {RouteKind::kStatus, {}, {}};
  }
  if (path == "/v2" || path == "/v2/") {
    return {RouteKind::kAnyReplica, {}, {}};
  }
  if (!path.starts_with("/v2/")) {
    return {};
  }
  const Pieces pieces = cut(path.substr(4));
  if (pieces[0] == "models" && pieces.count >= 2) {
    return model_route(method, pieces);
  }
  if (pieces[0] == "health") {
    return {pieces[1] == "live" ? RouteKind::kLive : RouteKind::kReady, {}, {}};
  }
  if (pieces[0] == "repository") {
    return repository_route(pieces);
  }
  if (pieces[0] == "systemsharedmemory" || pieces[0] == "cudasharedmemory" ||
      pieces[0] == "logging" || (pieces[0] == "trace" && pieces[1] == "setting")) {
    return {settings(method), {}, {}};
  }
  return {};
}

}  // namespace septet::balance
