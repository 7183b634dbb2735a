#include "partition/edge/mig_parted_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/text.h"
#include "os/durable_file.h"
#include "partition/profile_name.h"

namespace septet::partition {
namespace {

// What is wrong, and where; thrown only inside this file.
struct Bad {
  YAML::Mark mark;
  std::string why;
};

void check_fields(const YAML::Node& map, const std::vector<std::string>& known) {
  if (!map.IsMap()) {
    throw Bad{map.Mark(), "a mapping is expected here"};
  }
  for (const auto& field : map) {
    const std::string name = field.first.as<std::string>();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Bad{field.first.Mark(),
                fmt::format("unknown field '{}'; known are {}", name, join_words(known))};
    }
  }
}

YAML::Node required(const YAML::Node& map, const char* name) {
  const YAML::Node node = map[name];
  if (!node) {
    throw Bad{map.Mark(), fmt::format("'{}' is missing", name)};
  }
  return node;
}

unsigned small_number(const YAML::Node& node, const std::string& what) {
  const auto value = node.IsScalar() ? parse_int(node.Scalar()) : std::nullopt;
  if (!value || *value < 0 || *value > kMostInstances) {
    throw Bad{node.Mark(),
              fmt::format("{} must be a whole number from 0 to {}", what, kMostInstances)};
  }
  return static_cast<unsigned>(*value);
}

void read_filters(const YAML::Node& node, MigPartedEntry& entry) {
  if (node.IsScalar()) {
    entry.device_filters = {node.Scalar()};
  } else if (node.IsSequence()) {
    entry.device_filters = node.as<std::vector<std::string>>();
  }
  for (const std::string& filter : entry.device_filters) {
    if (!to_lower(filter).starts_with("0x") || filter.size() < 10) {
      throw Bad{node.Mark(), fmt::format("'{}' is no PCI device id as 0x20B010DE", filter)};
    }
  }
  if (entry.device_filters.empty()) {
    throw Bad{node.Mark(), "device-filter must be a PCI device id or a list of them"};
  }
}

void read_devices(const YAML::Node& node, MigPartedEntry& entry) {
  if (node.IsScalar() && node.Scalar() == "all") {
    entry.all_devices = true;
    return;
  }
  if (!node.IsSequence()) {
    throw Bad{node.Mark(), "devices must be all or a list of GPU indexes"};
  }
  for (const YAML::Node& item : node) {
    const unsigned device = small_number(item, "a GPU index");
    const auto& known = entry.devices;
    if (std::find(known.begin(), known.end(), device) != known.end()) {
      throw Bad{item.Mark(), fmt::format("GPU {} is named twice", device)};
    }
    entry.devices.push_back(device);
  }
}

void read_counts(const YAML::Node& node, MigPartedEntry& entry) {
  if (!node.IsMap()) {
    throw Bad{node.Mark(), "mig-devices must map profile names to counts"};
  }
  unsigned total = 0;
  for (const auto& item : node) {
    const std::string name = item.first.as<std::string>();
    const auto parsed = parse_profile_name(name);
    if (!parsed || !parsed->memory_gb) {
      throw Bad{item.first.Mark(), fmt::format("'{}' is no MIG profile name", name)};
    }
    if (entry.mig_devices.contains(name)) {
      throw Bad{item.first.Mark(), fmt::format("'{}' is named twice", name)};
    }
    const unsigned count = small_number(item.second, fmt::format("the count of {}", name));
    entry.mig_devices[name] = count;
    total += count;
  }
  if (node.size() > 0 && total == 0) {
    throw Bad{node.Mark(), "all counts are 0; write {} for no MIG devices"};
  }
}

MigPartedEntry read_entry(const YAML::Node& node) {
  check_fields(node, {"device-filter", "devices", "mig-enabled", "mig-devices"});
  MigPartedEntry entry;
  entry.line = static_cast<std::size_t>(node.Mark().line) + 1;
  if (node["device-filter"]) {
    read_filters(node["device-filter"], entry);
  }
  read_devices(required(node, "devices"), entry);
  const YAML::Node enabled = required(node, "mig-enabled");
  if (!YAML::convert<bool>::decode(enabled, entry.mig_enabled)) {
    throw Bad{enabled.Mark(), "mig-enabled must be true or false"};
  }
  if (entry.mig_enabled) {
    read_counts(required(node, "mig-devices"), entry);
  } else if (node["mig-devices"] && node["mig-devices"].size() > 0) {
    throw Bad{node["mig-devices"].Mark(), "mig-devices needs mig-enabled: true"};
  }
  return entry;
}

MigPartedConfig read_config(const YAML::Node& root, const std::string& file) {
  check_fields(root, {"version", "mig-configs"});
  const YAML::Node version = required(root, "version");
  if (!version.IsScalar() || version.Scalar() != "v1") {
    throw Bad{version.Mark(), "the version must be v1"};
  }
  const YAML::Node labels = required(root, "mig-configs");
  if (!labels.IsMap() || labels.size() == 0) {
    throw Bad{labels.Mark(), "mig-configs must name at least one label"};
  }
  MigPartedConfig config{file, {}};
  for (const auto& label : labels) {
    const std::string name = label.first.as<std::string>();
    if (!label.second.IsSequence() || label.second.size() == 0) {
      throw Bad{label.first.Mark(), fmt::format("'{}' must be a list of entries", name)};
    }
    for (const auto& [known, entries] : config.labels) {
      if (known == name) {
        throw Bad{label.first.Mark(), fmt::format("the label '{}' stands here twice", name)};
      }
    }
    std::vector<MigPartedEntry> entries;
    for (const YAML::Node& entry : label.second) {
      entries.push_back(read_entry(entry));
    }
    config.labels.emplace_back(name, std::move(entries));
  }
  return config;
}

Error bad_file(const std::string& file, const YAML::Mark& mark, const std::string& why) {
  return make_error(ErrorKind::kUsage, fmt::format("{}:{}: {}", file, mark.line + 1, why),
                    "no GPU was touched");
}

}  // namespace

Result<MigPartedConfig> read_mig_parted(std::string_view text, const std::string& file) {
  try {
    return read_config(YAML::Load(std::string(text)), file);
  } catch (const Bad& bad) {
    return bad_file(file, bad.mark, bad.why);
  } catch (const YAML::Exception& error) {
    return bad_file(file, error.mark, error.msg);
  }
}

Result<MigPartedConfig> load_mig_parted(const std::string& path) {
  auto text = os::read_whole_file(path);
  SEPTET_TRY(text);
  return read_mig_parted(*text, path);
}

}  // namespace septet::partition
