#include "balance/statistics_keeper.h"

#include "balance/reply_json.h"

namespace septet::balance {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// Whether the second was counted by another life of the replica than the first.
bool started_again(const Json& before, const Json& after) {
  return number_of(after, "inference_count") < number_of(before, "inference_count") ||
         number_of(after, "execution_count") < number_of(before, "execution_count");
}

void add_model(std::map<std::pair<std::string, std::string>, Json>& sums,
               const std::pair<std::string, std::string>& key, const Json& model) {
  const auto [place, is_new] = sums.try_emplace(key, model);
  if (!is_new) {
    add_counters(place->second, model);
  }
}

}  // namespace

bool StatisticsKeeper::record(const std::string& replica, std::string_view body) {
  const Json document = parse_reply(body);
  const auto list = document.is_object() ? document.find("model_stats") : document.end();
  if (!document.is_object() || list == document.end() || !list->is_array()) {
    return false;
  }
  Models& models = last_[replica];
  for (const Json& model : *list) {
    if (!model.is_object()) {
      continue;
    }
    const Key key(text_of(model, "name"), text_of(model, "version"));
    const auto known = models.find(key);
    if (known != models.end() && started_again(known->second, model)) {
      add_model(gone_, key, known->second);
    }
    models[key] = model;
  }
  return true;
}

void StatisticsKeeper::departed(const std::string& replica) {
  const auto found = last_.find(replica);
  if (found == last_.end()) {
    return;
  }
  for (const auto& [key, model] : found->second) {
    add_model(gone_, key, model);
  }
  last_.erase(found);
}

std::optional<std::string> StatisticsKeeper::document(std::string_view model,
                                                      std::string_view version) const {
  Models sums;
  const auto add = [&](const Models& models) {
    for (const auto& [key, statistics] : models) {
      if ((model.empty() || key.first == model) && (version.empty() || key.second == version)) {
        add_model(sums, key, statistics);
      }
    }
  };
  add(gone_);
  for (const auto& [replica, models] : last_) {
    add(models);
  }
  if (sums.empty() && !(model.empty() && !last_.empty())) {
    return std::nullopt;
  }
  Json merged;
  merged["model_stats"] = Json::array();
  for (auto& [key, statistics] : sums) {
    merged["model_stats"].push_back(std::move(statistics));
  }
  return merged.dump();
}

}  // namespace septet::balance
