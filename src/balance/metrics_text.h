// MetricsText: Prometheus exposition text of several servers joined into one.
//
// A value. Samples with the same name and labels are added up when their family is a counter,
// histogram or summary, and averaged when it is a gauge whose name says a share (utilization);
// other gauges are added. Lines that are no samples are skipped.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace septet::balance {

class MetricsText {
 public:
  void add(std::string_view text);
  // One sample of the proxy's own; labels as "{a=\"b\"}" or empty.
  void add_own(std::string_view family, std::string_view type, std::string_view help,
               std::string_view labels, double value);
  // Families in the order of their names, each with HELP and TYPE.
  std::string text() const;

 private:
  struct Sample {
    double sum = 0;
    std::uint64_t count = 0;
  };
  struct Family {
    std::string help;
    std::string type = "untyped";
    std::vector<std::string> order;  // sample names with labels, as first seen
    std::map<std::string, Sample, std::less<>> samples;
  };
  static bool averages(std::string_view name, const Family& family);
  Family& family_of(std::string_view sample);
  void add_sample(std::string_view line);

  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace septet::balance
