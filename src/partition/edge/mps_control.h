// MpsControl: one MPS control daemon, of one GPU or MIG device.
//
//   FOLDER/pipe   sockets: what clients name in CUDA_MPS_PIPE_DIRECTORY
//   FOLDER/log    control.log, server.log
//
// One daemon per partition, because a fault of one client stops every new client of its daemon on
// all of its GPUs. The daemon outlives us and is found again by its folder; its socket files stay
// when it is gone, so only an answer proves that it lives. Owned by whoever shares the partition,
// one thread; every call has a deadline.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "partition/mps_words.h"

namespace septet::partition {

struct MpsControlOptions {
  std::string folder;  // see above
  std::string device;  // UUID of the GPU or MIG device
  std::string program = "nvidia-cuda-mps-control";
  Duration timeout = seconds(10);  // of one command
};

class MpsControl {
 public:
  explicit MpsControl(MpsControlOptions options) : options_(std::move(options)) {}

  // Starts the daemon, or takes over the one that runs on this folder. kNotFound without the
  // program.
  Result<Ok> start();
  // Whether the daemon answers.
  bool is_alive();
  // One command line; the answer, judged by what it says (mps_words.h).
  Result<std::string> ask(const std::string& command);

  // Sets, reads back, and answers kVerification when what is read is not what was set.
  Result<Ok> set_defaults(const MpsDefaults& defaults);
  Result<MpsDefaults> defaults();

  // Servers that run: one per user that has clients.
  Result<std::vector<int>> servers();
  // The process ids of all clients of all servers.
  Result<std::vector<int>> clients();
  // Stops the GPU work of a client, so that it may be killed; the client then sees error 810. Ok
  // when it is no client.
  Result<Ok> terminate_client(int pid);
  // Ends the daemon; servers that still have clients are forced after the grace.
  Result<Ok> quit(Duration grace);

  std::string pipe_folder() const { return options_.folder + "/pipe"; }
  std::string log_folder() const { return options_.folder + "/log"; }
  // Why the last server ended, from the log; empty when none failed.
  std::string server_failure() const;

 private:
  Result<std::string> run(const std::vector<std::string>& arguments, const std::string& command);

  MpsControlOptions options_;
};

// Processes that use the device without being clients of its daemon: they run without any limit.
std::vector<int> unlimited_processes(const std::vector<int>& on_device,
                                     const std::vector<int>& clients);

}  // namespace septet::partition
