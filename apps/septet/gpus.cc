// septet gpus: the GPUs of this machine.

#include <memory>

#include "gpu_view.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

int run_gpus(const Globals& globals) {
  const auto view = read_gpus(globals, "");
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  Document document;
  document.schema = "septet.gpus/1";
  document.fields["driver"] = to_json(view->info);
  document.fields["gpus"] = Json::array();
  for (const gpu::GpuState& gpu : view->gpus) {
    Json row = to_json(gpu);
    row["mig"] = mode_text(gpu);
    row["gpu_instances"] = gpu.instances.size();
    row.erase("instances");
    row.erase("processes");
    document.fields["gpus"].push_back(std::move(row));
  }
  document.rows = "gpus";
  document.columns = {{"index", "GPU", Align::kRight},
                      {"name", "NAME"},
                      {"pci_bus_id", "PCI BUS"},
                      {"memory_used_mib", "USED MIB", Align::kRight},
                      {"memory_total_mib", "TOTAL MIB", Align::kRight},
                      {"mig", "MIG"},
                      {"gpu_instances", "GPU INSTANCES", Align::kRight},
                      {"uuid", "UUID"}};
  document.notes = {driver_note(view->info)};
  print(document, globals.output);
  return 0;
}

}  // namespace

void add_gpus(CLI::App& app, const Globals& globals, Action& action) {
  app.add_subcommand("gpus", "List the GPUs")->callback([&globals, &action] {
    action = [&globals] { return run_gpus(globals); };
  });
}

}  // namespace septet::app
