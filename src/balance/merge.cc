#include "balance/merge.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "balance/metrics_text.h"
#include "balance/reply_json.h"

namespace septet::balance {

namespace {

using Json = nlohmann::ordered_json;

bool succeeded(const ReplicaReply& reply) { return reply.status / 100 == 2; }

MergedReply as_it_is(const ReplicaReply& reply) {
  return {reply.status, reply.content_type, reply.body};
}

MergedReply none_answered() {
  return {503, "application/json", R"({"error":"no replica answered; try again"})"};
}

MergedReply first_error(const std::vector<ReplicaReply>& replies) {
  for (const ReplicaReply& reply : replies) {
    if (reply.status != 0 && !succeeded(reply)) {
      return as_it_is(reply);
    }
  }
  return none_answered();
}

MergedReply first_success(const std::vector<ReplicaReply>& replies) {
  for (const ReplicaReply& reply : replies) {
    if (succeeded(reply)) {
      return as_it_is(reply);
    }
  }
  return first_error(replies);
}

MergedReply all_succeeded(const std::vector<ReplicaReply>& replies) {
  const bool all = std::all_of(replies.begin(), replies.end(), succeeded);
  return all && !replies.empty() ? as_it_is(replies.front()) : first_error(replies);
}

// The JSON of every success that is one of the wanted kind.
std::vector<Json> parsed(const std::vector<ReplicaReply>& replies) {
  std::vector<Json> documents;
  for (const ReplicaReply& reply : replies) {
    if (succeeded(reply)) {
      Json document = parse_reply(reply.body);
      if (!document.is_discarded()) {
        documents.push_back(std::move(document));
      }
    }
  }
  return documents;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Objects of the named arrays, joined by name and version.
template <typename Join>
Json join_models(const std::vector<const Json*>& lists, Join join) {
  std::map<std::pair<std::string, std::string>, Json> models;
  for (const Json* list : lists) {
    for (const Json& model : *list) {
      if (!model.is_object()) {
        continue;
      }
      const std::pair key(text_of(model, "name"), text_of(model, "version"));
      const auto [place, is_new] = models.try_emplace(key, model);
      if (!is_new) {
        join(place->second, model);
      }
    }
  }
  Json joined = Json::array();
  for (auto& [key, model] : models) {
    joined.push_back(std::move(model));
  }
  return joined;
}

MergedReply merge_statistics(const std::vector<ReplicaReply>& replies) {
  const std::vector<Json> documents = parsed(replies);
  std::vector<const Json*> lists;
  for (const Json& document : documents) {
    const auto found = document.find("model_stats");
    if (found != document.end() && found->is_array()) {
      lists.push_back(&*found);
    }
  }
  if (lists.empty()) {
    return first_error(replies);
  }
  Json merged;
  merged["model_stats"] = join_models(lists, add_counters);
  return {200, "application/json", merged.dump()};
}

MergedReply merge_index(const std::vector<ReplicaReply>& replies) {
  const std::vector<Json> documents = parsed(replies);
  std::vector<const Json*> lists;
  for (const Json& document : documents) {
    if (document.is_array()) {
      lists.push_back(&document);
    }
  }
  if (lists.empty()) {
    return first_error(replies);
  }
  const Json merged = join_models(lists, [](Json& into, const Json& from) {
    if (text_of(into, "state") != "READY" && text_of(from, "state") == "READY") {
      into = from;
    }
  });
  return {200, "application/json", merged.dump()};
}

MergedReply merge_metrics(const std::vector<ReplicaReply>& replies) {
  MetricsText merged;
  for (const ReplicaReply& reply : replies) {
    if (succeeded(reply)) {
      merged.add(reply.body);
    }
  }
  return {200, "text/plain; charset=utf-8", merged.text()};
}

}  // namespace

MergedReply merge_replies(RouteKind kind, const std::vector<ReplicaReply>& replies) {
  switch (kind) {
    case RouteKind::kStatistics:
      return merge_statistics(replies);
    case RouteKind::kRepositoryIndex:
      return merge_index(replies);
    case RouteKind::kEveryReplica:
      return all_succeeded(replies);
    case RouteKind::kMetrics:
      return merge_metrics(replies);
    case RouteKind::kAnyReplica:
    case RouteKind::kInfer:
    case RouteKind::kLive:
    case RouteKind::kReady:
    case RouteKind::kStatus:
      return first_success(replies);
  }
  return none_answered();
}

}  // namespace septet::balance
