// TimedBackend: `backend: "timed"`: answers zeros after the time that a table says a real inference
// takes on a slice. No GPU and no model file are needed, so policies can be compared on a laptop.
//
// What it answers is not computed, and its metadata says so: the platform is "timed (simulated)".
// A model's parameters: service_times (a CSV file in the model's folder; without it the server's
// own), model (the table's name for it), slice, jitter, stall_chance, stall_us, seed.
#pragma once

#include <string>

#include "serve/backend.h"

namespace septet::serve {

struct TimedBackendOptions {
  std::string service_times_path{};  // a CSV outside the repository, given by the operator
  std::string slice = "1g";
  std::uint64_t seed = 1;
};

class TimedBackend : public Backend {
 public:
  explicit TimedBackend(TimedBackendOptions options = {}) : options_(std::move(options)) {}

  std::string_view name() const override { return "timed"; }
  Result<std::unique_ptr<BackendModel>> load(const LoadArguments& arguments) override;

 private:
  TimedBackendOptions options_;
};

}  // namespace septet::serve
