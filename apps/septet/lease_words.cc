#include "lease_words.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"

namespace septet::app {

void add_lease_options(CLI::App& verb, LeaseWords& words) {
  verb.add_option("--slice", words.slice,
                  "1g.5gb, 3g:2, >=10GB, gpu, MIG-UUID, mps:25%,10GB, time-slice:8GB")
      ->required()
      ->type_name("WANT");
  verb.add_option("--for", words.time, "How long; without it, as long as nobody waits")
      ->type_name("TIME");
  verb.add_option("--idle", words.idle, "Give it back when idle this long")->type_name("TIME");
  verb.add_flag("--queue", words.queue, "Wait when nothing is free");
  verb.add_option("--wait", words.wait, "Wait at most this long (implies --queue)")
      ->type_name("TIME");
  verb.add_option("--priority", words.priority, "low, normal or high");
  verb.add_flag("--preemptible", words.preemptible,
                "May be taken back for a request of higher priority");
  verb.add_option("--purpose", words.purpose, "What it is for, for colleagues to read");
}

Result<lend::Json> request_json(const LeaseWords& words) {
  lend::Json json = {{"slice", words.slice},
                     {"priority", words.priority},
                     {"preemptible", words.preemptible},
                     {"queue", words.queue || !words.wait.empty()},
                     {"purpose", words.purpose}};
  for (const auto& [key, value] : {std::pair{"time", &words.time}, std::pair{"idle", &words.idle},
                                   std::pair{"wait", &words.wait}}) {
    if (!value->empty()) {
      json[key] = *value;
    }
  }
  SEPTET_TRY(lend::request_from_json(json));
  return json;
}

std::string partition_text(const lend::Json& lease) {
  std::string text;
  for (const lend::Json& holding : lease.value("holdings", lend::Json::array())) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ",
                        holding.value("index", holding.value("partition", std::string("?"))),
                        holding.contains("profile") ? " " : "",
                        holding.value("profile", std::string()));
  }
  return text.empty() ? "-" : text;
}

std::string relative_time(double seconds_left) {
  // Minutes are exact enough for hours; without nanoseconds behind seconds.
  const Duration whole = seconds(static_cast<std::int64_t>(std::llround(std::abs(seconds_left))));
  return seconds_left >= 0 ? "in " + format_duration(whole) : format_duration(whole) + " ago";
}

}  // namespace septet::app
