#include "partition/edge/mps_control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "os/clock.h"
#include "os/durable_file.h"
#include "partition/edge/program_output.h"

namespace septet::partition {

namespace {

constexpr int kPollMs = 20;
constexpr mode_t kPipeMode = 0755;  // clients of other users pass through
constexpr std::size_t kMostLogBytes = std::size_t{4} << 20;

}  // namespace

Result<std::string> MpsControl::run(const std::vector<std::string>& arguments,
                                    const std::string& command) {
  ProgramRun run;
  run.arguments = {options_.program};
  run.arguments.insert(run.arguments.end(), arguments.begin(), arguments.end());
  run.input = command.empty() ? std::string() : command + "\n";
  run.timeout = options_.timeout;
  run.environment = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_folder()},
                     {"CUDA_MPS_LOG_DIRECTORY", log_folder()},
                     {"CUDA_VISIBLE_DEVICES", options_.device},
                     // Ours would become the daemon's defaults.
                     {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", ""},
                     {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ""},
                     {"CUDA_MPS_CLIENT_PRIORITY", ""}};
  Result<ProgramOutput> done = run_program(run);
  if (!done.ok()) {
    Error error = done.error();
    if (error.kind == ErrorKind::kNotFound) {
      error.hint = "install NVIDIA's MPS control program (Debian: nvidia-cuda-mps)";
    }
    return error;
  }
  // The exit code says nothing either way: 0 after an unknown command, 1 after a plain quit.
  return judge_answer(command.empty() ? arguments.front() : command, done->output, done->errors);
}

Result<std::string> MpsControl::ask(const std::string& command) { return run({}, command); }

bool MpsControl::is_alive() { return ask("get_server_list").ok(); }

Result<Ok> MpsControl::start() {
  SEPTET_TRY(os::make_folder(pipe_folder()));
  SEPTET_TRY(os::make_folder(log_folder()));
  if (chmod(pipe_folder().c_str(), kPipeMode) != 0) {
    return make_error(ErrorKind::kFailed, fmt::format("cannot open {} for clients: {}",
                                                      pipe_folder(), std::strerror(errno)));
  }
  if (is_alive()) {
    return Ok{};
  }
  const Result<std::string> started = run({"-d"}, {});
  SEPTET_TRY(started);
  const Instant deadline = os::now() + options_.timeout;
  Result<std::string> answer = ask("get_server_list");
  while (!answer.ok() && os::now() < deadline) {
    ::poll(nullptr, 0, kPollMs);
    answer = ask("get_server_list");
  }
  if (!answer.ok()) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("the MPS control daemon of {} did not come up: {}",
                                  options_.device, answer.error().message),
                      fmt::format("see {}/control.log", log_folder()));
  }
  return Ok{};
}

Result<Ok> MpsControl::set_defaults(const MpsDefaults& defaults) {
  SEPTET_TRY(check(defaults));
  for (const std::string& command : set_commands(defaults)) {
    SEPTET_TRY(ask(command));
  }
  const Result<MpsDefaults> read = this->defaults();
  SEPTET_TRY(read);
  if (*read != defaults) {
    return make_error(
        ErrorKind::kVerification,
        fmt::format("the MPS daemon of {} keeps {} % and {} MiB at priority {}, not the {} % and "
                    "{} MiB at priority {} that were set",
                    options_.device, read->thread_percent, read->memory_mib.value_or(0),
                    read->priority, defaults.thread_percent, defaults.memory_mib.value_or(0),
                    defaults.priority));
  }
  return Ok{};
}

Result<MpsDefaults> MpsControl::defaults() {
  MpsDefaults read;
  const Result<std::string> percent = ask("get_default_active_thread_percentage");
  SEPTET_TRY(percent);
  const auto number = parse_mps_percent(*percent);
  if (!number) {
    return make_error(ErrorKind::kVerification,
                      fmt::format("the MPS daemon says '{}' for its percentage", trim(*percent)));
  }
  // Whole percentages are all that is ever set; anything else is not what was set.
  for (unsigned whole = 0; whole <= 100; ++whole) {
    if (same_percent(*number, whole)) {
      read.thread_percent = whole;
    }
  }
  const Result<std::string> priority = ask("get_default_client_priority");
  SEPTET_TRY(priority);
  read.priority = static_cast<unsigned>(parse_uint(trim(*priority)).value_or(0));
  const Result<std::string> memory = ask("get_default_device_pinned_mem_limit 0");
  SEPTET_TRY(memory);
  read.memory_mib = parse_mps_memory_mib(*memory);
  return read;
}

Result<std::vector<int>> MpsControl::servers() {
  const Result<std::string> answer = ask("get_server_list");
  SEPTET_TRY(answer);
  return parse_pids(*answer);
}

Result<std::vector<int>> MpsControl::clients() {
  const Result<std::vector<int>> running = servers();
  SEPTET_TRY(running);
  std::vector<int> all;
  for (const int server : *running) {
    const Result<std::string> answer = ask(fmt::format("get_client_list {}", server));
    if (!answer.ok() && answer.error().kind == ErrorKind::kNotFound) {
      continue;  // ended between the two questions
    }
    SEPTET_TRY(answer);
    for (const int client : parse_pids(*answer)) {
      all.push_back(client);
    }
  }
  return all;
}

Result<Ok> MpsControl::terminate_client(int pid) {
  const Result<std::vector<int>> running = servers();
  SEPTET_TRY(running);
  for (const int server : *running) {
    const Result<std::string> answer = ask(fmt::format("get_client_list {}", server));
    if (!answer.ok()) {
      continue;
    }
    const std::vector<int> clients = parse_pids(*answer);
    if (std::find(clients.begin(), clients.end(), pid) != clients.end()) {
      SEPTET_TRY(ask(fmt::format("terminate_client {} {}", server, pid)));
    }
  }
  return Ok{};
}

Result<Ok> MpsControl::quit(Duration grace) {
  const Result<std::string> asked =
      ask(fmt::format("quit -t {}", std::max<std::int64_t>(0, grace / seconds(1))));
  if (!asked.ok() && asked.error().kind != ErrorKind::kPrecondition) {
    return asked.error();
  }
  const Instant deadline = os::now() + grace + options_.timeout;
  while (is_alive()) {
    if (os::now() > deadline) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("the MPS daemon of {} does not end", options_.device));
    }
    ::poll(nullptr, 0, kPollMs);
  }
  return Ok{};
}

std::string MpsControl::server_failure() const {
  const Result<std::string> log = os::read_whole_file(log_folder() + "/control.log", kMostLogBytes);
  return log.ok() ? server_failure_in_log(*log).value_or("") : "";
}

std::vector<int> unlimited_processes(const std::vector<int>& on_device,
                                     const std::vector<int>& clients) {
  std::vector<int> unlimited;
  for (const int pid : on_device) {
    if (std::find(clients.begin(), clients.end(), pid) == clients.end()) {
      unlimited.push_back(pid);
    }
  }
  return unlimited;
}

}  // namespace septet::partition
