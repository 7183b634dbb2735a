#include "balance/upstream_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "balance/reply_json.h"
#include "base/text.h"

namespace septet::balance {

namespace {

constexpr const char* kForm = R"(send {"upstreams":["unix:/run/a.sock name=a", "10.0.0.7:8000"]})";
constexpr std::string_view kName = "name=";

std::optional<UpstreamChange::Kind> kind_of(std::string_view method) {
  if (method == "PUT") {
    return UpstreamChange::Kind::kReplace;
  }
  if (method == "POST") {
    return UpstreamChange::Kind::kAdd;
  }
  return method == "DELETE" ? std::optional(UpstreamChange::Kind::kRemove) : std::nullopt;
}

bool is_called(std::string_view line, std::string_view what) {
  const std::vector<std::string_view> words = split(line, ' ');
  const auto is_name = [what](std::string_view word) {
    return word.starts_with(kName) && word.substr(kName.size()) == what;
  };
  return line == what || words.front() == what || std::any_of(words.begin(), words.end(), is_name);
}

}  // namespace

Result<UpstreamChange> parse_upstream_change(std::string_view method, std::string_view body) {
  const auto kind = kind_of(method);
  if (!kind) {
    return make_error(ErrorKind::kUsage, fmt::format("the method {} is not known here", method),
                      "GET shows the replicas, PUT replaces, POST adds and DELETE removes them");
  }
  const nlohmann::ordered_json document = parse_reply(body);
  const auto listed = document.is_object() ? document.find("upstreams") : document.end();
  if (!document.is_object() || document.size() != 1 || listed == document.end() ||
      !listed->is_array()) {
    return make_error(ErrorKind::kUsage, "the body is not an object with \"upstreams\" alone",
                      kForm);
  }
  UpstreamChange change{*kind, {}};
  for (const auto& line : *listed) {
    const std::string text = line.is_string() ? std::string(trim(line.get<std::string>())) : "";
    if (text.empty() || text.find_first_of("\n\r#") != std::string::npos) {
      return make_error(ErrorKind::kUsage, fmt::format("{} is no replica", line.dump()), kForm);
    }
    change.lines.push_back(text);
  }
  if (change.lines.empty()) {
    return make_error(ErrorKind::kUsage, "\"upstreams\" is empty",
                      "a balancer needs a replica; stop it to stop serving");
  }
  return change;
}

Result<std::vector<std::string>> apply_change(std::vector<std::string> lines,
                                              const UpstreamChange& change) {
  if (change.kind == UpstreamChange::Kind::kReplace) {
    lines.clear();
  }
  for (const std::string& wanted : change.lines) {
    if (change.kind != UpstreamChange::Kind::kRemove) {
      if (std::find(lines.begin(), lines.end(), wanted) == lines.end()) {
        lines.push_back(wanted);
      }
      continue;
    }
    const auto gone = std::erase_if(
        lines, [&wanted](const std::string& line) { return is_called(line, wanted); });
    if (gone == 0) {
      return make_error(ErrorKind::kNotFound, fmt::format("no replica is called '{}'", wanted),
                        "GET shows those that can be removed under \"given\"; those of a file are "
                        "changed there");
    }
  }
  return lines;
}

}  // namespace septet::balance
