// septet sim: the simulated node for other programs: create, look, hold, break, reboot, remove.
//
// `eval "$(septet sim env A100-SXM4-40GB)"` makes nvidia-smi, nvtop and everything else that loads
// libnvidia-ml.so.1 see the simulated node.

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "base/text.h"
#include "gpu/edge/open_driver.h"
#include "gpu/edge/simulation_file.h"
#include "gpu/edge/simulation_store.h"
#include "gpu/selector.h"
#include "gpu/simulated_driver.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

// What the words of the command line say.
struct SimWords {
  std::string node;  // MODEL[xN] or FILE; --simulate where it is left out
  std::string partition;
  std::string fault_file;
  std::string name = "septet-sim-worker";
  std::int64_t pid = 0;
  std::int64_t memory_mib = 0;
};

const std::string& node_of(const Globals& globals, const SimWords& words) {
  return words.node.empty() ? globals.simulate : words.node;
}

Result<std::string> directory_of(const Globals& globals, const SimWords& words) {
  const std::string& node = node_of(globals, words);
  if (node.empty()) {
    return make_error(ErrorKind::kUsage, "septet sim needs to know which node",
                      "name a model, as in septet sim create A100-SXM4-40GB");
  }
  return gpu::simulation_directory(node);
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

Result<Ok> print_env(const Globals& globals, const SimWords& words) {
  const auto library = gpu::simulated_library();
  if (!library.ok()) {
    return library.error();
  }
  SEPTET_TRY(directory_of(globals, words));
  const auto directory = gpu::ensure_simulation(node_of(globals, words));
  if (!directory.ok()) {
    return directory.error();
  }
  const std::string folder = std::filesystem::path(*library).parent_path();
  fmt::print("export SEPTET_SIMNVML_STATE={}\n", shell_quoted(*directory));
  fmt::print("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n",
             shell_quoted(folder));
  return Ok{};
}

Result<Ok> create_node(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  if (store.exists()) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("there is a simulated node in {} already", store.directory()),
                      "use it, or remove it with septet sim destroy");
  }
  SEPTET_TRY(gpu::ensure_simulation(node_of(globals, words)));
  fmt::print("created {}\n", *directory);
  return Ok{};
}

Json rule_json(const gpu::FaultRule& rule) {
  return {{"call", rule.call},
          {"first", rule.first},
          {"count", rule.count},
          {"seen", rule.seen},
          {"returns", rule.code ? std::string(gpu::code_name(*rule.code)) : ""},
          {"delay_ms", rule.delay.count() / 1'000'000}};
}

Result<Ok> show_node(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  const auto node = store.read();
  if (!node.ok()) {
    return node.error();
  }
  Document document;
  document.schema = "septet.sim/1";
  document.fields["directory"] = store.directory();
  document.fields["driver"] = node->config.driver_version;
  document.fields["gpus"] = Json::array();
  for (const gpu::SimulatedGpu& gpu : node->gpus) {
    document.fields["gpus"].push_back({{"index", gpu.config.index},
                                       {"model", gpu.config.model},
                                       {"numbers", model_of(gpu).provenance},
                                       {"mig", gpu.mig_current},
                                       {"gpu_instances", gpu.instances.size()},
                                       {"clients", gpu.clients.size()},
                                       {"lost", gpu.lost}});
  }
  document.fields["faults"] = Json::array();
  for (const gpu::FaultRule& rule : node->faults) {
    document.fields["faults"].push_back(rule_json(rule));
  }
  document.rows = "gpus";
  document.columns = {{"index", "GPU", Align::kRight},
                      {"model", "MODEL"},
                      {"mig", "MIG"},
                      {"gpu_instances", "GPU INSTANCES", Align::kRight},
                      {"clients", "CLIENTS", Align::kRight},
                      {"lost", "LOST"},
                      {"numbers", "NUMBERS"}};
  document.notes = {fmt::format("state: {}", store.directory()),
                    fmt::format("fault rules: {}", node->faults.size())};
  print(document, globals.output);
  return Ok{};
}

Result<Ok> destroy_node(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  SEPTET_TRY(store.destroy());
  fmt::print("removed {}\n", store.directory());
  return Ok{};
}

// Where a client sits: the whole GPU ("0") or a partition ("0:7", "0:7:0", "MIG-...").
Result<Ok> place_client(const gpu::SimulatedNode& node, const std::string& where,
                        gpu::SimulatedClient& client, std::size_t& gpu_index) {
  std::vector<gpu::GpuState> states;
  for (const gpu::SimulatedGpu& gpu : node.gpus) {
    states.push_back(gpu::state_of(gpu));
  }
  const bool is_partition = where.find(':') != std::string::npos || where.starts_with("MIG-");
  if (!is_partition) {
    const auto gpu = gpu::select_gpu(states, where);
    if (!gpu.ok()) {
      return gpu.error();
    }
    gpu_index = *gpu;
    return Ok{};
  }
  const auto partition = gpu::select_partition(states, where);
  if (!partition.ok()) {
    return partition.error();
  }
  gpu_index = partition->gpu;
  client.gpu_instance = partition->gpu_instance.value();
  if (partition->compute_instance) {
    client.compute_instance = partition->compute_instance->value();
  }
  return Ok{};
}

Result<Ok> attach(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  Result<Ok> outcome = Ok{};
  SEPTET_TRY(store.update([&](gpu::SimulatedNode& node) {
    gpu::SimulatedClient client;
    client.pid = words.pid;
    client.start_time = gpu::process_start_time(words.pid);  // 0, kept for ever: no such process
    client.name = words.name;
    client.used_memory_bytes = words.memory_mib * 1024 * 1024;
    std::size_t index = 0;
    outcome = place_client(node, words.partition, client, index);
    if (!outcome.ok()) {
      return;
    }
    const gpu::NvmlCode code = gpu::attach_client(node.gpus[index], client);
    if (code != gpu::NvmlCode::kSuccess) {
      outcome = gpu::nvml_error(code, fmt::format("attach a client to {}", words.partition));
    }
  }));
  return outcome;
}

Result<Ok> detach(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  return store.update([&](gpu::SimulatedNode& node) {
    for (gpu::SimulatedGpu& gpu : node.gpus) {
      gpu::detach_client(gpu, words.pid);
    }
  });
}

// A file replaces the plan; "none" removes it.
Result<Ok> plan_faults(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  std::vector<gpu::FaultRule> faults;
  if (words.fault_file != "none") {
    auto read = gpu::read_fault_file(words.fault_file);
    if (!read.ok()) {
      return read.error();
    }
    faults = std::move(read).value();
  }
  const gpu::SimulationStore store(*directory);
  return store.update([&](gpu::SimulatedNode& node) { node.faults = faults; });
}

Result<Ok> render_node(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  SEPTET_TRY(store.render());
  fmt::print("{}/sysroot\n", *directory);
  return Ok{};
}

Result<Ok> reboot_node(const Globals& globals, const SimWords& words) {
  const auto directory = directory_of(globals, words);
  if (!directory.ok()) {
    return directory.error();
  }
  const gpu::SimulationStore store(*directory);
  return store.update([](gpu::SimulatedNode& node) { gpu::reboot(node); });
}

using SimAction = Result<Ok> (*)(const Globals&, const SimWords&);

struct SimVerb {
  const char* name;
  const char* help;
  SimAction run;
};
constexpr SimVerb kSimVerbs[] = {
    {"env", "Print the shell lines that make other programs see the node", print_env},
    {"create", "Create the node", create_node},
    {"show", "Show the node's GPUs, clients and faults", show_node},
    {"attach", "Let a process hold a GPU or a partition", attach},
    {"detach", "Let a process go", detach},
    {"fault", "Set the plan of faults from a file, or remove it", plan_faults},
    {"render", "Write the node's /proc and /sys into a folder and keep it current", render_node},
    {"reboot", "Reboot the node: instances go, modes stay or not as on the chip", reboot_node},
    {"destroy", "Remove the node", destroy_node},
};

}  // namespace

void add_sim(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* sim = app.add_subcommand("sim", "The simulated node, for any program");
  sim->require_subcommand(1);
  const auto words = std::make_shared<SimWords>();
  for (const SimVerb& verb : kSimVerbs) {
    CLI::App* sub = sim->add_subcommand(verb.name, verb.help);
    const std::string_view name = verb.name;
    sub->add_option("node", words->node, "Model, MODELxN or YAML file; default --simulate")
        ->type_name("MODEL[xN]|FILE");
    if (name == "attach") {
      sub->add_option("--to", words->partition, "GPU, GPU:GI, GPU:GI:CI or MIG-UUID")->required();
      sub->add_option("--memory-mib", words->memory_mib, "What it uses")
          ->check(CLI::NonNegativeNumber);
      sub->add_option("--name", words->name, "Its name");
    }
    if (name == "fault") {
      sub->add_option("--plan", words->fault_file, "YAML file, or none")->required();
    }
    if (name == "attach" || name == "detach") {
      sub->add_option("--pid", words->pid, "The process")->required();
    }
    const SimAction run = verb.run;
    sub->callback([&globals, &action, words, run] {
      action = [&globals, words, run] {
        const auto done = run(globals, *words);
        return done.ok() ? 0 : fail(done.error(), globals.output);
      };
    });
  }
}

}  // namespace septet::app
