#include "balance/edge/upstream_keeper.h"

#include <nlohmann/json.hpp>

namespace septet::balance {

UpstreamKeeper::UpstreamKeeper(std::vector<std::string> lines, std::string file,
                               std::vector<Upstream> in_use, Use use)
    : lines_(std::move(lines)),
      file_(std::move(file)),
      in_use_(std::move(in_use)),
      use_(std::move(use)) {}

Result<Ok> UpstreamKeeper::refresh() {
  const std::lock_guard lock(mutex_);
  return take(lines_);
}

Result<Ok> UpstreamKeeper::change(const UpstreamChange& change) {
  const std::lock_guard lock(mutex_);
  Result<std::vector<std::string>> lines = apply_change(lines_, change);
  if (!lines.ok()) {
    return lines.error();
  }
  SEPTET_TRY(take(*lines));
  lines_ = *std::move(lines);
  return Ok{};
}

Result<Ok> UpstreamKeeper::take(const std::vector<std::string>& lines) {
  Result<std::vector<Upstream>> wanted = UpstreamSource(lines, file_).read();
  if (!wanted.ok()) {
    return wanted.error();
  }
  if (wanted->empty()) {
    return make_error(ErrorKind::kUsage, "no replica would be left",
                      "add another one first; a balancer needs one");
  }
  if (*wanted != in_use_) {
    SEPTET_TRY(use_(*wanted));
    in_use_ = *std::move(wanted);
  }
  return Ok{};
}

std::string UpstreamKeeper::json() const {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json document = {{"schema", "septet.upstreams/1"},
                                     {"upstreams", nlohmann::ordered_json::array()},
                                     {"given", lines_}};
  for (const Upstream& upstream : in_use_) {
    nlohmann::ordered_json one = {{"name", upstream.name}, {"address", upstream.endpoint.text()}};
    if (upstream.grpc) {
      one["grpc"] = upstream.grpc->text();
    }
    if (!upstream.models.empty()) {
      one["models"] = upstream.models;
    }
    document["upstreams"].push_back(std::move(one));
  }
  return document.dump();
}

}  // namespace septet::balance
