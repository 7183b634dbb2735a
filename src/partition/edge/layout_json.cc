#include "partition/edge/layout_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace septet::partition {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr const char* kJournalKey = "septet_journal";
constexpr const char* kLayoutKey = "septet_layout";

const char* mode_word(gpu::MigMode mode) {
  switch (mode) {
    case gpu::MigMode::kEnabled:
      return "enabled";
    case gpu::MigMode::kDisabled:
      return "disabled";
    case gpu::MigMode::kUnsupported:
      return "unsupported";
  }
  return "unsupported";
}

Json to_json(const Layout& layout) {
  Json instances = Json::array();
  for (const LayoutInstance& instance : layout.instances) {
    instances.push_back({{"profile_id", instance.profile_id.value()},
                         {"profile", instance.profile},
                         {"start", instance.placement.start},
                         {"size", instance.placement.size},
                         {"compute", instance.compute}});
  }
  return {{"mode", mode_word(layout.mode)}, {"instances", std::move(instances)}};
}

// Throws nlohmann's exceptions and std::runtime_error; only called below a catch.
unsigned small_number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 9999) {
    throw std::runtime_error(fmt::format("'{}' is no small number", key));
  }
  return value.get<unsigned>();
}

LayoutInstance instance_from(const Json& json) {
  LayoutInstance instance;
  instance.profile_id = gpu::ProfileId(small_number(json, "profile_id"));
  instance.profile = json.at("profile").get<std::string>();
  instance.placement = {small_number(json, "start"), small_number(json, "size")};
  instance.compute = json.at("compute").get<std::vector<unsigned>>();
  if (instance.placement.size == 0 || instance.placement.end() > kMostUnits ||
      instance.compute.size() > kMostUnits) {
    throw std::runtime_error(fmt::format("{} has an impossible placement", instance.profile));
  }
  return instance;
}

Layout layout_from(const Json& json) {
  Layout layout;
  const std::string mode = json.at("mode").get<std::string>();
  if (mode != "enabled" && mode != "disabled") {
    throw std::runtime_error(fmt::format("'{}' is no MIG mode", mode));
  }
  layout.mode = mode == "enabled" ? gpu::MigMode::kEnabled : gpu::MigMode::kDisabled;
  UnitMask used = 0;
  for (const Json& entry : json.at("instances")) {
    layout.instances.push_back(instance_from(entry));
    const UnitMask mask = LayoutSpace::mask_of(layout.instances.back().placement);
    if ((used & mask) != 0) {
      throw std::runtime_error("two instances overlap");
    }
    used |= mask;
  }
  return layout;
}

void check_version(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key)) {
    throw std::runtime_error(fmt::format("it has no '{}' and is none of septet's", key));
  }
  if (json.at(key) != kVersion) {
    throw std::runtime_error(fmt::format("version {} is not {}", json.at(key).dump(), kVersion));
  }
}

Error bad_file(const std::string& file, std::size_t line, std::string_view why,
               const std::string& hint) {
  return make_error(ErrorKind::kFailed, fmt::format("{}:{}: {}", file, line, why), hint);
}

std::size_t line_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

// Parses and reads under one catch: nlohmann's exceptions end here.
template <typename Read>
auto read_json(std::string_view text, const std::string& file, const std::string& hint,
               const Read& read) -> Result<decltype(read(Json()))> {
  try {
    return read(Json::parse(text));
  } catch (const Json::parse_error& error) {
    return bad_file(file, line_of(text, error.byte), "this is no JSON", hint);
  } catch (const std::exception& error) {
    return bad_file(file, 1, error.what(), hint);
  }
}

Intent intent_from(const Json& json) {
  check_version(json, kJournalKey);
  Intent intent;
  intent.gpu = gpu::GpuUuid(json.at("gpu").get<std::string>());
  intent.before = layout_from(json.at("before"));
  intent.after = layout_from(json.at("after"));
  for (const Json& entry : json.at("old_uuids")) {
    intent.old_uuids.emplace_back(entry.at(0).get<std::string>(),
                                  gpu::MigUuid(entry.at(1).get<std::string>()));
  }
  return intent;
}

StoredLayout stored_from(const Json& json) {
  check_version(json, kLayoutKey);
  return {gpu::GpuUuid(json.at("gpu").get<std::string>()), json.at("gpu_name").get<std::string>(),
          layout_from(json.at("layout"))};
}

}  // namespace

std::string write_stored_layout(const StoredLayout& stored) {
  const Json json = {{kLayoutKey, kVersion},
                     {"gpu", stored.gpu.value()},
                     {"gpu_name", stored.gpu_name},
                     {"layout", to_json(stored.layout)}};
  return json.dump(2) + "\n";
}

Result<StoredLayout> read_stored_layout(std::string_view text, const std::string& file) {
  return read_json(text, file, "write it anew with septet checkpoint", stored_from);
}

std::string write_intent_line(const Intent& intent) {
  Json uuids = Json::array();
  for (const auto& [place, uuid] : intent.old_uuids) {
    uuids.push_back({place, uuid.value()});
  }
  const Json json = {{kJournalKey, kVersion},
                     {"gpu", intent.gpu.value()},
                     {"before", to_json(intent.before)},
                     {"after", to_json(intent.after)},
                     {"old_uuids", std::move(uuids)}};
  return json.dump() + "\n";
}

std::string write_step_line(Direction direction, const ChangeStep& step) {
  const Json json = {{"direction", direction == Direction::kForward ? "forward" : "back"},
                     {"step", to_string(step)}};
  return json.dump() + "\n";
}

Result<Intent> read_journal(std::string_view text, const std::string& file) {
  const std::string hint =
      "the GPU was not touched; look at it with septet status, then remove this file";
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    return bad_file(file, 1, "the journal is cut off before its first line ends", hint);
  }
  return read_json(text.substr(0, end), file, hint, intent_from);
}

}  // namespace septet::partition
