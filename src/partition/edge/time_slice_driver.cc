#include "partition/edge/time_slice_driver.h"

#include <fmt/format.h>

#include "base/text.h"
#include "partition/edge/program_output.h"

namespace septet::partition {

Result<std::string> TimeSliceDriver::run(const CommandLine& arguments) {
  ProgramRun run;
  run.arguments = {program_};
  run.arguments.insert(run.arguments.end(), arguments.begin(), arguments.end());
  run.timeout = timeout_;
  Result<ProgramOutput> done = run_program(run);
  SEPTET_TRY(done);
  if (done->exit_code != 0) {
    const std::string said = done->errors.empty() ? done->output : done->errors;
    return make_error(ErrorKind::kFailed,
                      fmt::format("'{} {}' failed with code {}: {}", program_, arguments.front(),
                                  done->exit_code, trim(said)),
                      "it needs root and a whole GPU");
  }
  return std::move(done->output);
}

Result<Ok> TimeSliceDriver::set(const std::string& gpu_uuid, SliceLength length) {
  for (const CommandLine& command : time_slice_commands(gpu_uuid, length)) {
    SEPTET_TRY(run(command));
  }
  const Result<SliceLength> read = get(gpu_uuid);
  SEPTET_TRY(read);
  if (*read != length) {
    return make_error(ErrorKind::kVerification,
                      fmt::format("{} has {} time slices, not the {} ones that were set", gpu_uuid,
                                  to_string(*read), to_string(length)));
  }
  return Ok{};
}

Result<SliceLength> TimeSliceDriver::get(const std::string& gpu_uuid) {
  const Result<std::string> table = run(list_time_slice_command(gpu_uuid));
  SEPTET_TRY(table);
  const auto length = listed_slice_length(*table);
  if (!length) {
    return make_error(
        ErrorKind::kVerification,
        fmt::format("nvidia-smi does not tell the time slices of {}: {}", gpu_uuid, trim(*table)));
  }
  return *length;
}

}  // namespace septet::partition
