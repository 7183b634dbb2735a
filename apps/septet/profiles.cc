// septet profiles: which GPU instances a GPU offers, and how many more of each it would take now.

#include <fmt/format.h>

#include <memory>

#include "gpu_view.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

int run_profiles(const Globals& globals, const std::string& selector) {
  const auto view = read_gpus(globals, selector);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  Document document;
  document.schema = "septet.profiles/1";
  document.fields["driver"] = to_json(view->info);
  document.fields["profiles"] = Json::array();
  for (const gpu::GpuState& gpu : view->gpus) {
    for (const gpu::GpuInstanceProfile& profile : gpu.profiles) {
      Json row = {{"gpu", gpu.index}, {"gpu_name", gpu.name}};
      row.update(to_json(profile));
      // Older drivers do not tell with MIG off.
      const auto free = view->driver->remaining_capacity(gpu.index, profile.id);
      row["free"] = free.ok() ? Json(*free) : Json();
      document.fields["profiles"].push_back(std::move(row));
    }
    if (gpu.profiles.empty()) {
      document.notes.push_back(fmt::format("GPU {} ({}) {}", gpu.index, gpu.name,
                                           gpu.mig_current == gpu::MigMode::kUnsupported
                                               ? "has no MIG"
                                               : "tells its profiles only with MIG enabled"));
    }
  }
  document.rows = "profiles";
  document.columns = {
      {"gpu", "GPU", Align::kRight},         {"name", "PROFILE"},
      {"id", "ID", Align::kRight},           {"slices", "SLICES", Align::kRight},
      {"free", "FREE", Align::kRight},       {"max_instances", "MAX", Align::kRight},
      {"memory_mib", "MIB", Align::kRight},  {"multiprocessors", "SM", Align::kRight},
      {"copy_engines", "CE", Align::kRight}, {"decoders", "DEC", Align::kRight},
      {"encoders", "ENC", Align::kRight},    {"jpeg", "JPEG", Align::kRight},
      {"ofa", "OFA", Align::kRight},         {"placements", "PLACEMENTS"}};
  document.notes.push_back(driver_note(view->info));
  print(document, globals.output);
  return 0;
}

}  // namespace

void add_profiles(CLI::App& app, const Globals& globals, Action& action) {
  const auto selector = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("profiles", "List the profiles that the GPUs offer");
  verb->add_option("gpu", *selector, "GPUs: index, UUID, PCI bus id, name; several with commas")
      ->type_name("GPU");
  verb->callback([&globals, &action, selector] {
    action = [&globals, selector] { return run_profiles(globals, *selector); };
  });
}

}  // namespace septet::app
