#include "balancer_view.h"

#include <fmt/format.h>

#include <cmath>

#include "measure/edge/model_query.h"

namespace septet::app {

namespace {

constexpr const char* kSchema = "septet.balance/1";

std::uint64_t count_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// To as much as is worth showing: a thousandth of it with factor 1000.
void round_at(Json& object, const char* key, double factor) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number()) {
    *found = std::round(found->get<double>() * factor) / factor;
  }
}

bool is_status(const Json& fields) {
  if (!fields.is_object() || fields.value("schema", Json()) != kSchema) {
    return false;
  }
  const auto replicas = fields.find("replicas");
  return replicas != fields.end() && replicas->is_array();
}

// "3 of m, 1 of models not known yet": where requests wait.
std::string waiting_text(const Json& fields) {
  std::string text;
  const auto queues = fields.find("queues");
  if (queues == fields.end() || !queues->is_array()) {
    return text;
  }
  for (const Json& queue : *queues) {
    const std::uint64_t queued = queue.is_object() ? count_at(queue, "queued") : 0;
    if (queued > 0 && queue.contains("model") && queue["model"].is_string()) {
      const std::string model = queue["model"].get<std::string>();
      text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", queued,
                          model.empty() ? "models not known yet" : model);
    }
  }
  return text;
}

}  // namespace

Result<Document> read_balancer(const measure::ServerAccess& balancer) {
  const std::string address = balancer.named().text();
  const Result<measure::HttpReply> reply =
      measure::http_exchange(balancer, "GET", "/septet/status", {});
  if (!reply.ok() && reply.error().kind == ErrorKind::kPrecondition) {
    return make_error(ErrorKind::kPrecondition, reply.error().message,
                      "start `septet balance` there or give its address with --url");
  }
  if (!reply.ok()) {
    return reply.error();
  }
  Document document;
  document.fields = Json::parse(reply->body, nullptr, false);
  if (reply->status != 200 || !is_status(document.fields)) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("{} answers, but not as a balancer of septet", address),
                      "give the address that `septet balance` listens on");
  }
  Json& fields = document.fields;
  fields.erase("schema");
  for (Json& replica : fields["replicas"]) {
    round_at(replica, "busy_share", 100);
    round_at(replica, "speed", 10);
    round_at(replica, "round_trip_us", 1);
    if (replica.is_object() && replica.value("speed", Json()) == 0) {
      replica["speed"] = nullptr;  // not known yet
    }
  }
  document.schema = kSchema;
  document.heading = {fmt::format("Balancer {}: {} connections, {} waiting, {} in flight", address,
                                  count_at(fields, "connections"), count_at(fields, "queued"),
                                  count_at(fields, "in_flight")),
                      fmt::format("{} requests, {} sent again, {} refused, {} replies 5xx",
                                  count_at(fields, "requests"), count_at(fields, "retries"),
                                  count_at(fields, "refused"), count_at(fields, "replies_5xx"))};
  if (const std::string waiting = waiting_text(fields); !waiting.empty()) {
    document.heading.push_back("Waiting: " + waiting);
  }
  document.rows = "replicas";
  document.columns = {{"name", "REPLICA"},
                      {"state", "STATE"},
                      {"transport", "BODIES BY"},
                      {"in_flight", "IN FLIGHT", Align::kRight},
                      {"streams", "STREAMS", Align::kRight},
                      {"completed", "REPLIES", Align::kRight},
                      {"failed", "FAILED", Align::kRight},
                      {"ejections", "EJECTED", Align::kRight},
                      {"busy_share", "BUSY", Align::kRight},
                      {"speed", "PER SECOND", Align::kRight},
                      {"round_trip_us", "ROUND TRIP US", Align::kRight}};
  return document;
}

}  // namespace septet::app
