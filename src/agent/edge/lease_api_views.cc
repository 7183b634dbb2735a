// The part of the LeaseApi that routes, and shows what is there: leases, queue, partitions,
// history.

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agent/edge/error_json.h"
#include "agent/edge/lease_api.h"
#include "base/text.h"
#include "lend/slice_want.h"
#include "os/clock.h"

namespace septet::agent {

using lend::Json;
using lend::LeaseId;
using lend::UserId;

namespace {

constexpr unsigned kMostHistory = 1000;

void respond_error(ControlExchange& exchange, const Error& error) {
  exchange.respond(http_status(error.kind), error_json(error).dump());
}

Duration unix_offset() { return Duration(os::unix_time_ns()) - os::now().time_since_epoch(); }

}  // namespace

lend::Owner LeaseApi::owner_of(const Peer& peer) {
  if (const auto known = owners_.find(peer.uid); known != owners_.end()) {
    return known->second;
  }
  lend::Owner owner;
  owner.uid = UserId(peer.uid);
  owner.user = fmt::format("{}", peer.uid);
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(peer.uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    owner.user = found->pw_name;
    std::array<gid_t, 256> gids{};
    int count = static_cast<int>(gids.size());
    (void)getgrouplist(found->pw_name, found->pw_gid, gids.data(), &count);
    for (int i = 0; i < std::min(count, static_cast<int>(gids.size())); ++i) {
      group group_entry{};
      group* group_found = nullptr;
      std::array<char, 16384> group_buffer{};
      if (getgrgid_r(gids[static_cast<std::size_t>(i)], &group_entry, group_buffer.data(),
                     group_buffer.size(), &group_found) == 0 &&
          group_found != nullptr &&
          lender_.ledger().policy().groups.contains(group_found->gr_name)) {
        owner.groups.emplace_back(group_found->gr_name);
      }
    }
  }
  owners_.emplace(peer.uid, owner);
  return owner;
}

Json LeaseApi::lease_view(const lend::Lease& lease) const {
  Json json = to_json(lease, unix_offset());
  const lend::LeaseSetting* setting = lender_.setting(lease.id);
  json["limits"] = setting != nullptr && setting->is_enforced ? "enforced" : "advisory";
  if (lease.runs() || lease.state == lend::LeaseState::kReleasing) {
    json["expires_in_s"] = to_seconds(lease.expires - os::now());
    json["idle_s"] = to_seconds(os::now() - lease.last_busy);
    json["open_ended"] = !lease.request.time.has_value();
  }
  for (Json& holding : json["holdings"]) {
    for (const lend::Partition& partition : lender_.ledger().partitions()) {
      if (holding["partition"] == partition.id.value()) {
        holding["index"] = partition.index;
        holding["profile"] = partition.profile;
        holding["outside"] = partition.outside;
      }
    }
  }
  return json;
}

Json LeaseApi::granted_view(const lend::Lease& lease) const {
  Json json = {{"lease", lease_view(lease)}};
  const lend::LeaseSetting* found = lender_.setting(lease.id);
  const lend::LeaseSetting setting = found == nullptr ? lend::LeaseSetting{} : *found;
  json["setting"] = to_json(setting);
  json["note"] = note_;
  json["variables"] = Json::array();
  for (const lend::Variable& variable : lease_variables(lease, setting)) {
    json["variables"].push_back(
        {{"name", variable.name}, {"value", variable.value ? Json(*variable.value) : Json()}});
  }
  for (const auto& [name, format] : {std::pair{"sh", lend::EnvironmentFormat::kShell},
                                     std::pair{"docker", lend::EnvironmentFormat::kDocker},
                                     std::pair{"podman", lend::EnvironmentFormat::kPodman},
                                     std::pair{"slurm", lend::EnvironmentFormat::kSlurm},
                                     std::pair{"cdi", lend::EnvironmentFormat::kCdi}}) {
    json["environment"][name] = render_environment(lease, setting, format);
  }
  return json;
}

bool LeaseApi::handle(ControlExchange& exchange) {
  const ControlRequest& request = exchange.request();
  const auto segments = request.segments();
  if (segments.size() < 2 || segments[0] != "v1") {
    return false;
  }
  if (segments[1] == "leases" && segments.size() > 2) {
    return handle_lease(exchange);
  }
  if (segments.size() != 2) {
    return false;
  }
  if (segments[1] == "leases" && request.method == "POST") {
    acquire(exchange);
    return true;
  }
  if (request.method != "GET") {
    return false;
  }
  if (segments[1] == "leases") {
    list(exchange);
  } else if (segments[1] == "queue") {
    queue(exchange);
  } else if (segments[1] == "partitions") {
    partitions(exchange);
  } else if (segments[1] == "history") {
    history(exchange);
  } else if (segments[1] == "status") {
    status(exchange);
  } else {
    return false;
  }
  return true;
}

bool LeaseApi::handle_lease(ControlExchange& exchange) {
  const ControlRequest& request = exchange.request();
  const auto segments = request.segments();
  const auto number = parse_uint(segments[2]);
  if (!number) {
    respond_error(exchange, make_error(ErrorKind::kUsage,
                                       fmt::format("'{}' is no number of a lease", segments[2])));
    return true;
  }
  const LeaseId id(*number);
  const std::string_view what = segments.size() > 3 ? segments[3] : std::string_view();
  if (segments.size() > 4) {
    return false;
  }
  if (what.empty() && request.method == "GET") {
    show(exchange, id);
  } else if (what.empty() && request.method == "PUT") {
    renew(exchange, id);
  } else if (what.empty() && request.method == "DELETE") {
    release(exchange, id);
  } else if (what == "attach" && request.method == "POST") {
    attach(exchange, id);
  } else if (what == "processes" && request.method == "POST") {
    add_process(exchange, id);
  } else if (what == "activity" && request.method == "POST") {
    report_activity(exchange, id);
  } else {
    return false;
  }
  return true;
}

void LeaseApi::list(ControlExchange& exchange) {
  const auto& query = exchange.request().query;
  const auto user = query.find("user");
  Json leases = Json::array();
  for (const auto& [id, lease] : lender_.ledger().leases()) {
    if (user == query.end() || lease.request.owner.user == user->second) {
      leases.push_back(lease_view(lease));
    }
  }
  exchange.respond(200, Json{{"leases", leases}, {"note", note_}}.dump());
}

void LeaseApi::queue(ControlExchange& exchange) {
  Json waiting = Json::array();
  unsigned position = 0;
  for (const LeaseId id : lender_.ledger().queue()) {
    const lend::Lease& lease = lender_.ledger().leases().at(id);
    Json view = lease_view(lease);
    view["position"] = ++position;
    view["waits_for_quota"] = lender_.ledger().waits_for_quota(id);
    view["waited_s"] = to_seconds(os::now() - lease.requested);
    waiting.push_back(std::move(view));
  }
  exchange.respond(200, Json{{"queue", waiting}, {"note", note_}}.dump());
}

void LeaseApi::partitions(ControlExchange& exchange) {
  Json partitions = Json::array();
  for (const lend::Partition& partition : lender_.ledger().partitions()) {
    Json view = to_json(partition);
    view["leases"] = Json::array();
    for (const auto& [id, lease] : lender_.ledger().leases()) {
      for (const lend::Holding& holding : lease.holdings) {
        if (holding.partition == partition.id) {
          view["leases"].push_back({{"id", id.value()}, {"user", lease.request.owner.user}});
        }
      }
    }
    partitions.push_back(std::move(view));
  }
  exchange.respond(200, Json{{"partitions", partitions}, {"note", note_}}.dump());
}

void LeaseApi::history(ControlExchange& exchange) {
  lend::HistoryQuery wanted;
  const auto& query = exchange.request().query;
  if (const auto limit = query.find("limit"); limit != query.end()) {
    const auto number = parse_uint(limit->second);
    if (!number || *number == 0 || *number > kMostHistory) {
      return respond_error(exchange,
                           make_error(ErrorKind::kUsage,
                                      fmt::format("limit is a number from 1 to {}", kMostHistory)));
    }
    wanted.most = static_cast<unsigned>(*number);
  }
  if (const auto user = query.find("user"); user != query.end()) {
    wanted.user = user->second;
  }
  const auto entries = lender_.history(wanted);
  if (!entries.ok()) {
    return respond_error(exchange, entries.error());
  }
  Json leases = Json::array();
  for (const lend::HistoryEntry& entry : *entries) {
    Json view = to_json(entry.lease, Duration::zero());
    // Their instants are of the boot they ended in; people read these.
    view["requested_ns"] = entry.requested_unix_ns;
    view["granted_ns"] = entry.granted_unix_ns;
    view["ended_ns"] = entry.ended_unix_ns;
    leases.push_back(std::move(view));
  }
  exchange.respond(200, Json{{"leases", leases}, {"note", note_}}.dump());
}

void LeaseApi::status(ControlExchange& exchange) {
  std::size_t waiting = lender_.ledger().queue().size();
  exchange.respond(200, Json{{"partitions", lender_.ledger().partitions().size()},
                             {"leases", lender_.ledger().leases().size() - waiting},
                             {"waiting", waiting},
                             {"trouble", lender_.trouble()},
                             {"note", note_}}
                            .dump());
}

}  // namespace septet::agent
