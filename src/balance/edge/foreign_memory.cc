#include "balance/edge/foreign_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "balance/edge/reactor.h"
#include "balance/reply_json.h"
#include "balance/shared_request.h"

namespace septet::balance {

namespace {

bool is_on_this_machine(const os::Endpoint& endpoint) {
  return endpoint.is_unix() || endpoint.host == "localhost" || endpoint.host == "::1" ||
         endpoint.host.starts_with("127.");
}

std::string region_target(const std::string& key, std::string_view verb) {
  return fmt::format("/v2/systemsharedmemory/region/{}/{}", key.substr(1), verb);
}

}  // namespace

bool announces_shared_memory(std::string_view server_metadata) {
  const nlohmann::ordered_json document = parse_reply(server_metadata);
  if (!document.is_object()) {
    return false;
  }
  const auto extensions = document.find("extensions");
  return extensions != document.end() && extensions->is_array() &&
         std::find(extensions->begin(), extensions->end(), "system_shared_memory") !=
             extensions->end();
}

std::string without_own_regions(std::string_view status_json) {
  const nlohmann::ordered_json document = parse_reply(status_json);
  if (!document.is_array()) {
    return std::string(status_json);
  }
  nlohmann::ordered_json others = nlohmann::ordered_json::array();
  for (const auto& region : document) {
    if (region.dump().find(kRegionPrefix) == std::string::npos) {
      others.push_back(region);
    }
  }
  return others.dump();
}

void ForeignMemory::replica_is_up() {
  state_ = State::kUnknown;
  losses_ = 0;
  if (!reactor_.options().foreign_shared_memory ||
      !is_on_this_machine(replica_.upstream().endpoint)) {
    return;
  }
  state_ = State::kAsking;
  side_.ask("/v2", [this](unsigned status, std::string_view body) {
    const bool announced = status == 200 && announces_shared_memory(body);
    if (state_ == State::kAsking) {
      state_ = announced ? State::kAnnounced : State::kUnknown;
      enroll();
    }
  });
}

// A region that it may know by this name already is forgotten first: it could be of another object.
void ForeignMemory::enroll() {
  if (state_ != State::kAnnounced) {
    return;
  }
  reactor_.slots_changed();
  const os::NamedMemory* const region = reactor_.bodies().named_region();
  if (region == nullptr) {
    // None beside one for septet's own replicas, which is no reason to complain.
    refused(reactor_.bodies().name_refused());
    return;
  }
  const std::string& key = region->key();
  side_.tell(region_target(key, "unregister"), "{}", [](unsigned, std::string_view) {});
  side_.tell(region_target(key, "register"),
             fmt::format(R"({{"key":"{}","offset":0,"byte_size":{}}})", key, region->size()),
             [this](unsigned status, std::string_view body) {
               if (state_ != State::kAnnounced) {
                 return;
               }
               if (status == 200) {
                 state_ = State::kRegistered;
                 reactor_.slots_changed();
               } else {
                 refused(status == 0 ? "it did not answer" : body);
               }
             });
}

void ForeignMemory::refused(std::string_view why) {
  state_ = State::kRefused;
  reactor_.slots_changed();
  if (!why.empty() && !complained_) {
    complained_ = true;
    fmt::print(stderr,
               "septet: replica '{}' cannot read shared memory of this machine ({}); it gets whole "
               "bodies; if it runs in a container, let it share /dev/shm (--ipc=host)\n",
               replica_.name(), why);
  }
}

void ForeignMemory::lost() {
  if (state_ != State::kRegistered) {
    return;
  }
  if (++losses_ > kMostLosses) {
    refused("it registered a region and does not find it");
    return;
  }
  state_ = State::kAnnounced;
  enroll();
}

}  // namespace septet::balance
