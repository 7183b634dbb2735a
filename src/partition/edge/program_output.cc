#include "partition/edge/program_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "os/process.h"
#include "os/unique_fd.h"

namespace septet::partition {

namespace {

constexpr int kShellNotFound = 127;

// A file in memory that catches what a program prints.
Result<os::UniqueFd> make_capture(const char* name) {
  os::UniqueFd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("cannot catch output: {}", std::strerror(errno)));
  }
  return fd;
}

std::string captured(const os::UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = pread(fd.get(), buffer.data(), buffer.size(),
                                     static_cast<off_t>(text.size()))) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

Result<ProgramOutput> run_program(const ProgramRun& run) {
  const Result<os::UniqueFd> output = make_capture("output");
  SEPTET_TRY(output);
  const Result<os::UniqueFd> errors = make_capture("errors");
  SEPTET_TRY(errors);
  os::ProcessOptions options;
  options.arguments = run.arguments;
  if (!run.input.empty()) {
    // os::Process reads /dev/null: the shell hands the input over.
    options.arguments = {"sh", "-c", "printf '%s' \"$0\" | \"$@\"", run.input};
    options.arguments.insert(options.arguments.end(), run.arguments.begin(), run.arguments.end());
  }
  options.environment = run.environment;
  options.standard_output = output->get();
  options.standard_error = errors->get();
  // A daemon that it starts lives on.
  options.kill_with_parent = false;
  Result<os::Process> process = os::Process::start(options);
  SEPTET_TRY(process);
  const auto status = process->wait(run.timeout);
  const std::string& name = run.arguments.front();
  if (!status) {
    return make_error(ErrorKind::kFailed, fmt::format("'{}' did not end within {:.0f} s", name,
                                                      to_seconds(run.timeout)));
  }
  if (!run.input.empty() && status->code == kShellNotFound) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("cannot start '{}': no such program", name));
  }
  if (status->signal != 0) {
    return make_error(ErrorKind::kFailed, fmt::format("'{}' ended by {}", name, status->text()));
  }
  return ProgramOutput{captured(*output), captured(*errors), status->code};
}

}  // namespace septet::partition
