#include "serve/edge/server_settings.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "inference/json_writer.h"
#include "serve/metrics.h"

namespace septet::serve {

using inference::invalid_argument;
using inference::JsonWriter;
using Kind = V2Path::Kind;
using nlohmann::json;

namespace {

// The members of a JSON object; an empty body is an empty object.
Outcome<json> parse_object(std::string_view body, std::string_view what) {
  if (trim(body).empty()) {
    return json::object();
  }
  json parsed = json::parse(body, nullptr, false);
  if (!parsed.is_object()) {
    return invalid_argument(fmt::format("the {} request must be a JSON object", what));
  }
  return parsed;
}

Outcome<std::string> memory_status(const SharedMemoryRegions& regions, const std::string& name) {
  const auto all = regions.status(name);
  SEPTET_TRY(all);
  JsonWriter answer;
  answer.begin_array();
  for (const SharedMemoryStatus& region : *all) {
    answer.begin_object().key("name").value(region.name).key("key").value(region.key);
    answer.key("offset").value(region.offset).key("byte_size").value(region.byte_size).end_object();
  }
  return answer.end_array().take();
}

Outcome<std::string> memory_register(InferenceServer& server, const std::string& name,
                                     std::string_view body) {
  const auto request = parse_object(body, "register");
  SEPTET_TRY(request);
  const auto number = [&](const char* key) {
    const auto found = request->find(key);
    return found != request->end() && found->is_number_unsigned()
               ? std::optional(found->get<std::uint64_t>())
               : std::nullopt;
  };
  const auto key = request->find("key");
  const auto size = number("byte_size");
  if (key == request->end() || !key->is_string() || !size ||
      (request->contains("offset") && !number("offset"))) {
    return invalid_argument(
        "registering shared memory takes 'key' as a string, 'byte_size' and, if it is not 0, "
        "'offset' as unsigned integers");
  }
  SEPTET_TRY(
      server.register_memory({name, key->get<std::string>(), number("offset").value_or(0), *size}));
  return std::string();
}

}  // namespace

Outcome<std::string> system_memory_call(InferenceServer& server, const V2Path& path,
                                        std::string_view body) {
  if (path.kind == Kind::kSystemMemoryRegister) {
    return memory_register(server, path.region, body);
  }
  if (path.kind == Kind::kSystemMemoryStatus) {
    return memory_status(server.memory(), path.region);
  }
  if (path.region.empty()) {
    server.memory().unregister_all();
  } else {
    server.memory().unregister(path.region);
  }
  return std::string();
}

// The real clients unregister CUDA regions whether or not there is CUDA, so that must succeed.
Outcome<std::string> cuda_memory_call(const V2Path& path) {
  if (path.kind == Kind::kCudaMemoryRegister) {
    return inference::unsupported(fmt::format(
        "failed to register CUDA shared memory region: '{}', not offered by this server",
        path.region));
  }
  if (path.kind == Kind::kCudaMemoryUnregister) {
    return std::string();
  }
  if (!path.region.empty()) {
    return inference::not_found(
        fmt::format("Unable to find cuda shared memory region: '{}'", path.region));
  }
  return std::string("[]");
}

Outcome<std::string> logging_call(ServerLog& log, std::string_view body) {
  const auto request = parse_object(body, "logging");
  SEPTET_TRY(request);
  // All is looked at before anything is changed.
  for (const auto& [name, value] : request->items()) {
    if (name == "log_info" || name == "log_warning" || name == "log_error") {
      if (!value.is_boolean()) {
        return invalid_argument(fmt::format("'{}' must be a boolean", name));
      }
    } else if (name == "log_verbose_level") {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > UINT32_MAX) {
        return invalid_argument("'log_verbose_level' must be an unsigned integer");
      }
    } else if (name == "log_format") {
      if (value != "default" && value != "ISO8601") {
        return invalid_argument("'log_format' must be 'default' or 'ISO8601'");
      }
    } else if (name == "log_file") {
      if (value != "") {
        return inference::unsupported("log file location can not be updated through the protocol");
      }
    } else {
      return invalid_argument(fmt::format("unknown log setting '{}'", name));
    }
  }
  log.info_on = request->value("log_info", log.info_on.load());
  log.warning_on = request->value("log_warning", log.warning_on.load());
  log.error_on = request->value("log_error", log.error_on.load());
  log.verbose_level = request->value("log_verbose_level", log.verbose_level.load());
  log.iso8601 = request->value("log_format", log.iso8601 ? "ISO8601" : "default") == "ISO8601";
  JsonWriter answer;
  answer.begin_object().key("log_file").value("");
  answer.key("log_info").value(log.info_on.load());
  answer.key("log_warning").value(log.warning_on.load());
  answer.key("log_error").value(log.error_on.load());
  answer.key("log_verbose_level").value(log.verbose_level.load());
  answer.key("log_format").value(log.iso8601 ? "ISO8601" : "default").end_object();
  return answer.take();
}

std::string metrics_text(const InferenceServer& server, std::size_t connections) {
  std::vector<ModelSnapshot> models;
  for (const ModelHandle& handle : server.store().loaded()) {
    models.push_back({handle->config().name, handle->version(), handle->config().metric_tags,
                      handle->config().instance_count(), handle->scheduler().statistics()});
  }
  HostSnapshot host{.connections = connections};
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  std::uint64_t kib = 0;
  std::uint64_t available = 0;
  while (file >> name >> kib) {
    std::getline(file, unit);
    if (name == "MemTotal:") {
      host.memory_total_bytes = kib * 1024;
    } else if (name == "MemAvailable:") {
      available = kib * 1024;
    }
  }
  host.memory_used_bytes = host.memory_total_bytes - available;
  return write_metrics(models, host);
}

}  // namespace septet::serve
