#include "balance/metrics_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace septet::balance {

bool MetricsText::averages(std::string_view name, const Family& family) {
  return family.type == "gauge" && (name.ends_with("utilization") || name.ends_with("_ratio"));
}

// A sample of a histogram or summary is named after its family with a suffix.
MetricsText::Family& MetricsText::family_of(std::string_view sample) {
  std::string_view name = sample.substr(0, sample.find('{'));
  for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (name.ends_with(suffix)) {
      const auto found = families_.find(name.substr(0, name.size() - suffix.size()));
      if (found != families_.end() &&
          (found->second.type == "histogram" || found->second.type == "summary")) {
        return found->second;
      }
    }
  }
  return families_[std::string(name)];
}

void MetricsText::add_sample(std::string_view line) {
  const std::size_t labels = line.find('{');
  const std::size_t from = labels == std::string_view::npos ? 0 : line.rfind('}');
  const std::size_t blank =
      from == std::string_view::npos ? std::string_view::npos : line.find(' ', from);
  if (blank == std::string_view::npos) {
    return;
  }
  const std::string_view name = trim(line.substr(0, blank));
  const std::string_view rest = trim(line.substr(blank));
  const std::optional<double> value = parse_double(rest.substr(0, rest.find(' ')));
  if (name.empty() || !value) {
    return;
  }
  Family& family = family_of(name);
  const auto [place, is_new] = family.samples.try_emplace(std::string(name));
  if (is_new) {
    family.order.emplace_back(name);
  }
  place->second.sum += *value;
  ++place->second.count;
}

void MetricsText::add(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    const bool help = line.starts_with("# HELP ");
    if (help || line.starts_with("# TYPE ")) {
      const std::string_view rest = line.substr(7);
      const std::size_t blank = rest.find(' ');
      if (blank != std::string_view::npos) {
        Family& family = families_[std::string(rest.substr(0, blank))];
        (help ? family.help : family.type) = std::string(rest.substr(blank + 1));
      }
    } else if (!line.empty() && line.front() != '#') {
      add_sample(line);
    }
  }
}

void MetricsText::add_own(std::string_view name, std::string_view type, std::string_view help,
                          std::string_view labels, double value) {
  Family& family = families_[std::string(name)];
  family.type = std::string(type);
  family.help = std::string(help);
  const std::string sample = std::string(name) + std::string(labels);
  const auto [place, is_new] = family.samples.try_emplace(sample);
  if (is_new) {
    family.order.push_back(sample);
  }
  place->second = {value, 1};
}

std::string MetricsText::text() const {
  std::string out;
  for (const auto& [name, family] : families_) {
    if (family.order.empty()) {
      continue;
    }
    if (!family.help.empty()) {
      out += fmt::format("# HELP {} {}\n", name, family.help);
    }
    out += fmt::format("# TYPE {} {}\n", name, family.type);
    for (const std::string& sample : family.order) {
      const Sample& value = family.samples.find(sample)->second;
      const double shown = averages(name, family) && value.count > 0
                               ? value.sum / static_cast<double>(value.count)
                               : value.sum;
      out += fmt::format("{} {}\n", sample, shown);
    }
  }
  return out;
}

}  // namespace septet::balance
