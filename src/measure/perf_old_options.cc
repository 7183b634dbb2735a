#include "measure/perf_old_options.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace septet::measure {

namespace {

constexpr const char* kNoServerInside =
    "no server is started inside: start septet serve --model-repository DIR and name it with -u";
constexpr const char* kLoadThatChanges =
    "measure each level with --concurrency-range, or replay a load that changes with "
    "--request-trace FILE";
constexpr const char* kSessions =
    "replay the arrivals of sessions with --request-trace FILE, or their contents with "
    "--input-data FILE.json";

constexpr std::array kRefusedOptions = {
    RefusedOption{"--service-kind", true, "triton",
                  "only servers of the KServe v2 protocol are measured (Triton, septet serve)"},
    RefusedOption{"--model-signature-name", true, "serving_default",
                  "it belongs to TensorFlow Serving; leave it out"},
    RefusedOption{"--triton-server-directory", true, "/opt/tritonserver", kNoServerInside},
    RefusedOption{"--model-repository", true, "", kNoServerInside},
    RefusedOption{"--periodic-concurrency-range", true, "", kLoadThatChanges},
    RefusedOption{"--request-period", true, "", kLoadThatChanges},
    RefusedOption{"--fixed-schedule", false, "", "replay arrival times with --request-trace FILE"},
    RefusedOption{"--session-concurrency", true, "", kSessions},
};

Error usage(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::kUsage, std::move(message), std::move(hint));
}

}  // namespace

Result<PerfArguments> in_todays_words(PerfArguments arguments) {
  const bool old_load =
      arguments.old_concurrency || arguments.old_max_concurrency || arguments.dynamic_concurrency;
  if (old_load && (arguments.concurrency_range || arguments.request_rate_range ||
                   arguments.request_intervals || arguments.request_trace)) {
    return usage("-t, -c and -d are old words for --concurrency-range and exclude other loads",
                 "leave them out");
  }
  if (arguments.old_max_concurrency && !arguments.dynamic_concurrency) {
    return usage("-c limits what -d grows to, and -d was not given",
                 "write --concurrency-range START:END");
  }
  if (old_load) {
    const std::uint64_t start = arguments.old_concurrency.value_or(1);
    arguments.concurrency_range =
        arguments.dynamic_concurrency
            ? fmt::format("{}:{}", start, arguments.old_max_concurrency.value_or(0))
            : std::to_string(start);
  }
  if (arguments.zero_input) {
    arguments.input_data.emplace_back("zero");
  }
  if (!arguments.data_directory.empty()) {
    arguments.input_data.push_back(arguments.data_directory);
  }
  arguments.old_concurrency.reset();
  arguments.old_max_concurrency.reset();
  arguments.dynamic_concurrency = false;
  arguments.zero_input = false;
  arguments.data_directory.clear();
  return arguments;
}

std::span<const RefusedOption> refused_options() { return kRefusedOptions; }

Result<Ok> check_mpi(const char* processes) {
  const std::optional<std::uint64_t> number =
      processes == nullptr ? std::nullopt : parse_uint(processes);
  if (number.value_or(1) <= 1) {
    return Ok{};
  }
  return usage(fmt::format("--enable-mpi with {} processes is not offered", *number),
               "name several servers with -u URL -u URL, or start one septet perf on each machine "
               "and give septet report all their files");
}

Result<Ok> refuse(const RefusedOption& option, const std::string& value) {
  if (option.takes_value && *option.same_value != '\0' &&
      to_lower(value) == to_lower(option.same_value)) {
    return Ok{};
  }
  return usage(option.takes_value ? fmt::format("{} {} is not offered", option.name, value)
                                  : fmt::format("{} is not offered", option.name),
               option.instead);
}

}  // namespace septet::measure
