#include "lend/edge/lease_json.h"

#include <fmt/format.h>

#include "base/units.h"
#include "lend/slice_want.h"

namespace septet::lend {

namespace {

std::int64_t instant_json(Instant instant, Duration offset) {
  return (instant.time_since_epoch() + offset).count();
}

Instant instant_from(const Json& json, const char* key) {
  return Instant(Duration(json.value(key, std::int64_t{0})));
}

Error bad_field(const char* key, const std::string& why) {
  return make_error(ErrorKind::kUsage, fmt::format("field '{}' {}", key, why));
}

// A duration in words ("4h"); absent or null = none.
Result<std::optional<Duration>> optional_duration(const Json& json, const char* key) {
  if (!json.contains(key) || json[key].is_null()) {
    return std::optional<Duration>();
  }
  if (!json[key].is_string()) {
    return bad_field(key, "is a duration such as \"4h\"");
  }
  const Result<Duration> duration = parse_duration(json[key].get<std::string>());
  if (!duration.ok()) {
    return bad_field(key, "is wrong: " + duration.error().message);
  }
  return std::optional<Duration>(*duration);
}

std::string duration_text(Duration duration) { return fmt::format("{}ns", duration.count()); }

Json holding_json(const Holding& holding) {
  return {{"partition", holding.partition.value()},
          {"kind", to_string(holding.kind)},
          {"percent", holding.percent},
          {"memory_mib", holding.memory_mib},
          {"share_permille", holding.share_permille}};
}

std::optional<SliceKind> parse_slice_kind(const std::string& word) {
  for (const SliceKind kind :
       {SliceKind::kWholeGpu, SliceKind::kInstance, SliceKind::kMps, SliceKind::kTimeSlice}) {
    if (word == to_string(kind)) {
      return kind;
    }
  }
  return std::nullopt;
}

// Reads what to_json() wrote; throws nlohmann's exceptions, which lease_from_json() catches.
Lease read_lease(const Json& json, const LeaseRequest& request) {
  Lease lease;
  lease.id = LeaseId(json.at("id").get<std::uint64_t>());
  lease.request = request;
  const Json& owner = json.at("owner");
  lease.request.owner.uid = UserId(owner.at("uid").get<unsigned>());
  lease.request.owner.user = owner.at("user").get<std::string>();
  lease.request.owner.groups = owner.at("groups").get<std::vector<std::string>>();
  lease.state = parse_lease_state(json.at("state").get<std::string>()).value();
  lease.reason = parse_end_reason(json.at("reason").get<std::string>()).value();
  lease.warned_for = parse_end_reason(json.at("warned_for").get<std::string>()).value();
  for (const Json& each : json.at("holdings")) {
    Holding holding;
    holding.partition = PartitionId(each.at("partition").get<std::string>());
    holding.kind = parse_slice_kind(each.at("kind").get<std::string>()).value();
    holding.percent = each.at("percent").get<unsigned>();
    holding.memory_mib = each.at("memory_mib").get<std::int64_t>();
    holding.share_permille = each.at("share_permille").get<unsigned>();
    lease.holdings.push_back(std::move(holding));
  }
  lease.requested = instant_from(json, "requested_ns");
  lease.granted = instant_from(json, "granted_ns");
  lease.expires = instant_from(json, "expires_ns");
  lease.last_busy = instant_from(json, "last_busy_ns");
  lease.deadline = instant_from(json, "deadline_ns");
  lease.is_paused = json.at("paused").get<bool>();
  lease.generation = json.at("generation").get<unsigned>();
  return lease;
}

}  // namespace

Json to_json(const LeaseRequest& request) {
  Json json;
  json["slice"] = to_string(request.want);
  json["priority"] = to_string(request.priority);
  json["time"] = request.time ? Json(duration_text(*request.time)) : Json();
  json["idle"] =
      request.idle_after == Duration::zero() ? Json() : Json(duration_text(request.idle_after));
  json["preemptible"] = request.is_preemptible;
  json["queue"] = request.when_busy == WhenBusy::kQueue;
  json["wait"] = request.longest_wait ? Json(duration_text(*request.longest_wait)) : Json();
  json["attached"] = request.is_attached;
  json["checkpoint_hook"] = request.has_checkpoint_hook;
  json["purpose"] = request.purpose;
  return json;
}

Result<LeaseRequest> request_from_json(const Json& json) {
  if (!json.is_object()) {
    return make_error(ErrorKind::kUsage, "a lease request is a JSON object");
  }
  LeaseRequest request;
  try {
    const Result<SliceWant> want = parse_slice_want(json.value("slice", std::string()));
    SEPTET_TRY(want);
    request.want = *want;
    const auto priority = parse_priority(json.value("priority", std::string("normal")));
    if (!priority) {
      return bad_field("priority", "is low, normal or high");
    }
    request.priority = *priority;
    request.is_preemptible = json.value("preemptible", false);
    request.when_busy = json.value("queue", false) ? WhenBusy::kQueue : WhenBusy::kRefuse;
    request.is_attached = json.value("attached", false);
    request.has_checkpoint_hook = json.value("checkpoint_hook", false);
    request.purpose = json.value("purpose", std::string());
  } catch (const Json::exception& exception) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("a field of the lease request has the wrong type: {}", exception.what()));
  }
  constexpr std::size_t kLongestPurpose = 1000;
  if (request.purpose.size() > kLongestPurpose) {
    return bad_field("purpose", fmt::format("is longer than {} bytes", kLongestPurpose));
  }
  const auto time = optional_duration(json, "time");
  SEPTET_TRY(time);
  request.time = *time;
  const auto idle = optional_duration(json, "idle");
  SEPTET_TRY(idle);
  request.idle_after = idle->value_or(Duration::zero());
  const auto wait = optional_duration(json, "wait");
  SEPTET_TRY(wait);
  request.longest_wait = *wait;
  return request;
}

Json to_json(const Lease& lease, Duration offset) {
  Json json;
  json["id"] = lease.id.value();
  json["state"] = to_string(lease.state);
  json["reason"] = to_string(lease.reason);
  const Owner& owner = lease.request.owner;
  json["owner"] = {{"uid", owner.uid.value()}, {"user", owner.user}, {"groups", owner.groups}};
  json["request"] = to_json(lease.request);
  json["holdings"] = Json::array();
  for (const Holding& holding : lease.holdings) {
    json["holdings"].push_back(holding_json(holding));
  }
  json["requested_ns"] = instant_json(lease.requested, offset);
  json["granted_ns"] = instant_json(lease.granted, offset);
  json["expires_ns"] = instant_json(lease.expires, offset);
  json["last_busy_ns"] = instant_json(lease.last_busy, offset);
  json["deadline_ns"] = instant_json(lease.deadline, offset);
  json["warned_for"] = to_string(lease.warned_for);
  json["paused"] = lease.is_paused;
  json["generation"] = lease.generation;
  return json;
}

Result<Lease> lease_from_json(const Json& json) {
  try {
    const Result<LeaseRequest> request = request_from_json(json.at("request"));
    SEPTET_TRY(request);
    return read_lease(json, *request);
  } catch (const std::exception& exception) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("a lease cannot be read: {}", exception.what()));
  }
}

Json to_json(const LeaseSetting& setting) {
  return {{"mps_pipe_directory", setting.mps_pipe_directory},
          {"mps_sm_partition", setting.mps_sm_partition},
          {"cpus", setting.cpus},
          {"memory_bytes", setting.memory_bytes},
          {"simulated", setting.is_simulated},
          {"enforced", setting.is_enforced}};
}

Json to_json(const Partition& partition) {
  return {{"id", partition.id.value()},         {"gpu", partition.gpu.value()},
          {"index", partition.index},           {"profile", partition.profile},
          {"memory_mib", partition.memory_mib}, {"share_permille", partition.share_permille},
          {"lendable", partition.is_lendable},  {"why_not", partition.why_not_lendable},
          {"outside", partition.outside}};
}

Result<Json> parse_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return make_error(ErrorKind::kUsage, "the text is not JSON");
  }
  return json;
}

}  // namespace septet::lend
