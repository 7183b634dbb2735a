#include "serve/trace_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace septet::serve {

void TraceSettings::change(const std::string& model, const TraceChange& change) {
  if (model.empty()) {
    TraceSetting& to = global_.setting;
    const auto set = [](const auto& field, auto& value, const auto& at_start) {
      if (field) {
        value = field->value_or(at_start);
      }
    };
    set(change.timestamps, to.timestamps, start_.timestamps);
    set(change.rate, to.rate, start_.rate);
    set(change.count, to.count, start_.count);
    set(change.log_frequency, to.log_frequency, start_.log_frequency);
    global_.counter = {};
    return;
  }
  OwnFields& to = own_[model];
  const auto set = [](const auto& field, auto& value) {
    if (field) {
      value = *field;
    }
  };
  set(change.timestamps, to.timestamps);
  set(change.rate, to.rate);
  set(change.count, to.count);
  set(change.log_frequency, to.log_frequency);
  to.counter = {};
  if (!to.timestamps && !to.rate && !to.count && !to.log_frequency) {
    own_.erase(model);
  }
}

TraceSetting TraceSettings::of(const std::string& model) const {
  TraceSetting setting = global_.setting;
  std::int64_t begun = global_.counter.begun;
  if (const auto own = own_.find(model); own != own_.end()) {
    const OwnFields& fields = own->second;
    setting = {fields.timestamps.value_or(setting.timestamps), fields.rate.value_or(setting.rate),
               fields.count.value_or(setting.count),
               fields.log_frequency.value_or(setting.log_frequency)};
    begun = fields.counter.begun;
  }
  if (setting.count >= 0) {
    setting.count = std::max<std::int64_t>(setting.count - begun, 0);
  }
  return setting;
}

bool TraceSettings::is_on() const {
  return global_.setting.timestamps || std::any_of(own_.begin(), own_.end(), [](const auto& own) {
           return own.second.timestamps.value_or(false);
         });
}

bool TraceSettings::sample(const std::string& model) {
  const TraceSetting setting = of(model);
  if (!setting.timestamps || setting.count == 0) {
    return false;
  }
  const auto own = own_.find(model);
  Counter& counter = own == own_.end() ? global_.counter : own->second.counter;
  if (++counter.requests % std::max(setting.rate, 1U) != 0) {
    return false;
  }
  ++counter.begun;
  return true;
}

namespace {

Error bad_config(std::string_view text, std::string why) {
  return make_error(ErrorKind::kUsage,
                    fmt::format("'{}' is no trace configuration: {}", text, std::move(why)),
                    "write rate=N, count=N, level=TIMESTAMPS, triton,file=PATH or "
                    "triton,log-frequency=N");
}

}  // namespace

Result<Ok> apply_trace_config(std::string_view text, TraceStart& start) {
  std::string_view setting = text;
  const bool of_mode = setting.starts_with("triton,");
  if (of_mode) {
    setting.remove_prefix(std::string_view("triton,").size());
  } else if (setting.find(',') < setting.find('=')) {
    return bad_config(text, "the mode 'triton' is the only one offered");
  }
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    return bad_config(text, "it has no '='");
  }
  const std::string_view name = setting.substr(0, equals);
  const std::string_view value = setting.substr(equals + 1);
  const auto number = parse_uint(value);
  const bool fits = number && *number <= UINT32_MAX;
  if (of_mode && name == "file" && !value.empty()) {
    start.file = value;
  } else if (of_mode && name == "log-frequency" && fits) {
    start.setting.log_frequency = static_cast<std::uint32_t>(*number);
  } else if (!of_mode && name == "rate" && fits && *number > 0) {
    start.setting.rate = static_cast<std::uint32_t>(*number);
  } else if (!of_mode && name == "count" && (fits || value == "-1")) {
    start.setting.count = fits ? static_cast<std::int64_t>(*number) : -1;
  } else if (!of_mode && name == "level" && (value == "TIMESTAMPS" || value == "OFF")) {
    start.setting.timestamps = value == "TIMESTAMPS";
  } else if (!of_mode && name == "level") {
    return bad_config(text, fmt::format("the level '{}' is not offered", value));
  } else if (!(!of_mode && name == "mode" && value == "triton")) {
    return bad_config(text, fmt::format("'{}' does not take '{}'", name, value));
  }
  return Ok{};
}

}  // namespace septet::serve
