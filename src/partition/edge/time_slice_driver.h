// TimeSliceDriver: sets the length of a GPU's time slices by running nvidia-smi, and reads it back.
//
// Whoever shares the GPU owns it; one thread. Every run of the program has a deadline.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "partition/time_slice.h"

namespace septet::partition {

class TimeSliceDriver {
 public:
  explicit TimeSliceDriver(std::string program = "nvidia-smi", Duration timeout = seconds(30))
      : program_(std::move(program)), timeout_(timeout) {}

  // kVerification when another length is read back, kFailed with nvidia-smi's own words.
  Result<Ok> set(const std::string& gpu_uuid, SliceLength length);
  Result<SliceLength> get(const std::string& gpu_uuid);

 private:
  Result<std::string> run(const CommandLine& arguments);

  std::string program_;
  Duration timeout_;
};

}  // namespace septet::partition
