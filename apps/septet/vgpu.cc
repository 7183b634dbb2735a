// septet vgpu: parts of a GPU for virtual machines: what a card offers, create, list, remove.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "output.h"
#include "partition/edge/state_folder.h"
#include "partition/edge/vgpu_sysfs.h"
#include "verb.h"

namespace septet::app {
namespace {

using partition::VgpuDevice;
using partition::VgpuSysfs;

struct Words {
  std::string root;
  std::string card;
  std::string device;
  unsigned type = 0;
  std::string owner;
};

// Who calls, also behind sudo.
std::string caller() {
  for (const char* name : {"SUDO_USER", "USER", "LOGNAME"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      return value;
    }
  }
  return fmt::format("{}", getuid());
}

VgpuSysfs sysfs(const Words& words) {
  const std::string state = words.root.empty() ? partition::StateFolder::standard(false).path()
                                               : words.root + "/var/lib/septet";
  return VgpuSysfs({.root = words.root, .state_folder = state + "/vgpu"});
}

int types(const Words& words, const Globals& globals) {
  const auto found = sysfs(words).types(words.card);
  if (!found.ok()) {
    return fail(found.error(), globals.output);
  }
  Document document;
  document.schema = "septet.vgpu_types/1";
  document.rows = "types";
  document.fields["card"] = words.card;
  document.fields["types"] = Json::array();
  for (const partition::VgpuType& type : *found) {
    document.fields["types"].push_back(
        {{"id", type.id}, {"name", type.name}, {"available", type.available}});
  }
  document.columns = {
      {"id", "TYPE", Align::kRight}, {"name", "NAME"}, {"available", "AVAILABLE", Align::kRight}};
  document.notes.emplace_back(partition::kVgpuLicenceWarning);
  print(document, globals.output);
  return 0;
}

Document document_of(const std::vector<VgpuDevice>& devices) {
  Document document;
  document.schema = "septet.vgpu/1";
  document.rows = "devices";
  document.fields["devices"] = Json::array();
  for (const VgpuDevice& device : devices) {
    document.fields["devices"].push_back({{"id", device.id},
                                          {"parent", device.parent},
                                          {"type", device.type},
                                          {"owner", device.owner}});
  }
  document.columns = {
      {"id", "DEVICE"}, {"parent", "ON"}, {"type", "TYPE", Align::kRight}, {"owner", "OWNER"}};
  if (!devices.empty()) {
    document.fields["warning"] = partition::kVgpuLicenceWarning;
    document.notes.emplace_back(partition::kVgpuLicenceWarning);
  }
  return document;
}

int create(const Words& words, const Globals& globals) {
  if (globals.dry_run) {
    return types(words, globals);
  }
  const auto device = sysfs(words).create(words.card, words.type, words.owner);
  if (!device.ok()) {
    return fail(device.error(), globals.output);
  }
  print(document_of({*device}), globals.output);
  return 0;
}

int list(const Words& words, const Globals& globals) {
  const auto devices = sysfs(words).devices();
  if (!devices.ok()) {
    return fail(devices.error(), globals.output);
  }
  print(document_of(*devices), globals.output);
  return 0;
}

int remove(const Words& words, const Globals& globals) {
  if (globals.dry_run) {
    return list(words, globals);
  }
  const auto removed = sysfs(words).remove(words.device, words.owner);
  if (!removed.ok()) {
    return fail(removed.error(), globals.output);
  }
  return list(words, globals);
}

}  // namespace

void add_vgpu(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand("vgpu", "Parts of a GPU for virtual machines");
  verb->require_subcommand(1);
  verb->fallthrough();
  const auto words = std::make_shared<Words>();
  words->owner = caller();
  verb->add_option("--root", words->root, "Where /sys is found, if not at /")->type_name("DIR");
  using Work = int (*)(const Words&, const Globals&);
  const auto add = [&](const char* name, const char* help, Work work) {
    CLI::App* sub = verb->add_subcommand(name, help);
    sub->callback([&action, &globals, words, work] {
      action = [=, &globals] { return work(*words, globals); };
    });
    return sub;
  };
  constexpr const char* kOwner = "Whose it is: only they remove it";

  add("types", "What a card offers now", types)
      ->add_option("card", words->card, "PCI address, such as 0000:07:00.0")
      ->required();
  CLI::App* sub = add("create", "Make one; its licence is the guest's", create);
  sub->add_option("card", words->card, "PCI address")->required();
  sub->add_option("--type", words->type, "A number of septet vgpu types")->required();
  sub->add_option("--for", words->owner, kOwner)->type_name("NAME");
  add("list", "What was made here", list);
  sub = add("remove", "Give one back", remove);
  sub->add_option("device", words->device, "UUID or PCI address")->required();
  sub->add_option("--for", words->owner, kOwner)->type_name("NAME");
}

}  // namespace septet::app
