#include "partition/edge/vgpu_sysfs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "os/durable_file.h"
#include "os/unique_fd.h"

namespace septet::partition {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTypePrefix = "nvidia-";

// Truncates as a shell's > does, which sysfs ignores.
Result<Ok> write_plainly(const std::string& path, const std::string& text) {
  const os::UniqueFd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd.valid() ||
      write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return make_error(errno == EACCES ? ErrorKind::kPermission : ErrorKind::kFailed,
                      fmt::format("cannot write '{}' to {}: {}", text, path, std::strerror(errno)));
  }
  return Ok{};
}

std::string read_line(const std::string& path) {
  const Result<std::string> text = os::read_whole_file(path);
  return text.ok() ? std::string(trim(*text)) : std::string();
}

std::optional<unsigned> read_number(const std::string& path) {
  const auto number = parse_uint(read_line(path));
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

// Lines "id : name".
std::map<unsigned, std::string> read_creatable(const std::string& path) {
  std::map<unsigned, std::string> types;
  const Result<std::string> text = os::read_whole_file(path);
  if (!text.ok()) {
    return types;
  }
  for (const std::string_view line : split(*text, '\n')) {
    const std::size_t colon = line.find(':');
    const auto id = parse_uint(trim(line.substr(0, colon)));
    if (colon != std::string_view::npos && id && *id > 0) {
      types.emplace(static_cast<unsigned>(*id), trim(line.substr(colon + 1)));
    }
  }
  return types;
}

// A device's name is a UUID or a PCI address: nothing that leaves the folder of records.
bool is_device_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '-' ||
           c == ':' || c == '.';
  }) && name.find("..") == std::string_view::npos;
}

Error no_room(unsigned type) {
  return make_error(ErrorKind::kNoCapacity,
                    fmt::format("the card cannot take one more vGPU of type {}", type),
                    "remove one, or take a smaller type; different sizes on one card need "
                    "nvidia-smi vgpu -shm 1 first");
}

}  // namespace

VgpuSysfs::VgpuSysfs(VgpuSysfsOptions options) : options_(std::move(options)) {
  if (!options_.write) {
    options_.write = write_plainly;
  }
}

std::string VgpuSysfs::device_folder(const std::string& pci_address) const {
  return fmt::format("{}/sys/bus/pci/devices/{}", options_.root, pci_address);
}

std::vector<std::string> VgpuSysfs::functions_of(const std::string& pci_address) const {
  std::vector<std::pair<std::uint64_t, std::string>> virtual_functions;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(device_folder(pci_address), error)) {
    constexpr std::string_view kLink = "virtfn";
    const std::string name = entry.path().filename();
    if (!name.starts_with(kLink)) {
      continue;
    }
    const auto number = parse_uint(std::string_view(name).substr(kLink.size()));
    const fs::path target = fs::read_symlink(entry.path(), error);
    if (number && !error) {
      virtual_functions.emplace_back(*number, target.filename());
    }
  }
  std::sort(virtual_functions.begin(), virtual_functions.end());
  std::vector<std::string> functions = {pci_address};
  for (const auto& [number, address] : virtual_functions) {
    functions.push_back(address);
  }
  return functions;
}

Result<VgpuLayout> VgpuSysfs::layout(const std::string& pci_address) const {
  if (!is_device_name(pci_address) || !fs::exists(device_folder(pci_address))) {
    return make_error(ErrorKind::kNotFound, fmt::format("there is no PCI device {}", pci_address));
  }
  for (const std::string& function : functions_of(pci_address)) {
    if (fs::exists(device_folder(function) + "/nvidia/creatable_vgpu_types")) {
      return VgpuLayout::kVendorVfio;
    }
    if (fs::exists(device_folder(function) + "/mdev_supported_types")) {
      return VgpuLayout::kMdev;
    }
  }
  return make_error(ErrorKind::kPrecondition, fmt::format("{} offers no vGPU", pci_address),
                    "install the vGPU host driver; SR-IOV cards need sriov-manage -e first");
}

Result<std::vector<VgpuType>> VgpuSysfs::types(const std::string& pci_address) const {
  const Result<VgpuLayout> found = layout(pci_address);
  SEPTET_TRY(found);
  std::map<unsigned, VgpuType> types;
  for (const std::string& function : functions_of(pci_address)) {
    const std::string folder = device_folder(function);
    if (*found == VgpuLayout::kVendorVfio) {
      const bool is_free = read_number(folder + "/nvidia/current_vgpu_type") == 0U;
      for (const auto& [id, name] : read_creatable(folder + "/nvidia/creatable_vgpu_types")) {
        VgpuType& type = types.try_emplace(id, VgpuType{id, name, 0}).first->second;
        type.available += is_free ? 1 : 0;
      }
      continue;
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder + "/mdev_supported_types", error)) {
      const std::string name = entry.path().filename();
      const auto id = name.starts_with(kTypePrefix)
                          ? parse_uint(std::string_view(name).substr(kTypePrefix.size()))
                          : std::nullopt;
      if (id) {
        const auto number = static_cast<unsigned>(*id);
        VgpuType& type =
            types.try_emplace(number, VgpuType{number, read_line(entry.path() / "name"), 0})
                .first->second;
        type.available += read_number(entry.path() / "available_instances").value_or(0);
      }
    }
  }
  std::vector<VgpuType> list;
  for (auto& [id, type] : types) {
    list.push_back(std::move(type));
  }
  return list;
}

Result<VgpuDevice> VgpuSysfs::create(const std::string& pci_address, unsigned type,
                                     const std::string& owner) {
  const Result<VgpuLayout> found = layout(pci_address);
  SEPTET_TRY(found);
  const Result<std::vector<VgpuType>> offered = types(pci_address);
  SEPTET_TRY(offered);
  // A wrong number must never be written: it would reset the function.
  const auto known = std::find_if(offered->begin(), offered->end(),
                                  [&](const VgpuType& each) { return each.id == type; });
  if (known == offered->end()) {
    std::vector<std::string> names;
    for (const VgpuType& each : *offered) {
      names.push_back(fmt::format("{} ({})", each.id, each.name));
    }
    return make_error(ErrorKind::kNotFound, fmt::format("the card has no vGPU type {}", type),
                      "it offers " + (names.empty() ? "none" : join_words(names)));
  }
  if (known->available == 0) {
    return no_room(type);
  }
  const std::vector<std::string> functions = functions_of(pci_address);
  Result<VgpuDevice> device =
      *found == VgpuLayout::kMdev ? create_mdev(functions, type) : create_vendor(functions, type);
  SEPTET_TRY(device);
  device->owner = owner;
  if (const Result<Ok> written = record(*device); !written.ok()) {
    // Without a record nobody could ever give it back.
    (void)(*found == VgpuLayout::kMdev
               ? options_.write(
                     fmt::format("{}/sys/bus/mdev/devices/{}/remove", options_.root, device->id),
                     "1")
               : options_.write(device_folder(device->id) + "/nvidia/current_vgpu_type", "0"));
    return written.error();
  }
  return device;
}

Result<VgpuDevice> VgpuSysfs::create_mdev(const std::vector<std::string>& functions,
                                          unsigned type) {
  for (const std::string& function : functions) {
    const std::string folder =
        fmt::format("{}/mdev_supported_types/{}{}", device_folder(function), kTypePrefix, type);
    if (read_number(folder + "/available_instances").value_or(0) == 0) {
      continue;
    }
    const std::string uuid = read_line("/proc/sys/kernel/random/uuid");
    SEPTET_TRY(options_.write(folder + "/create", uuid));
    if (!fs::exists(fmt::format("{}/sys/bus/mdev/devices/{}", options_.root, uuid))) {
      return make_error(ErrorKind::kVerification,
                        fmt::format("the kernel took vGPU {} and does not show it", uuid));
    }
    return VgpuDevice{uuid, function, type, {}};
  }
  return no_room(type);
}

Result<VgpuDevice> VgpuSysfs::create_vendor(const std::vector<std::string>& functions,
                                            unsigned type) {
  for (const std::string& function : functions) {
    const std::string current = device_folder(function) + "/nvidia/current_vgpu_type";
    if (read_number(current) != 0U ||
        !read_creatable(device_folder(function) + "/nvidia/creatable_vgpu_types").contains(type)) {
      continue;
    }
    SEPTET_TRY(options_.write(current, std::to_string(type)));
    if (read_number(current) != type) {
      return make_error(ErrorKind::kVerification,
                        fmt::format("{} does not keep vGPU type {}: it shows '{}'", function, type,
                                    read_line(current)));
    }
    return VgpuDevice{function, function, type, {}};
  }
  return no_room(type);
}

// One file per device: "type parent" and the owner on the second line.
Result<Ok> VgpuSysfs::record(const VgpuDevice& device) {
  SEPTET_TRY(os::make_folder(options_.state_folder));
  return os::replace_file(options_.state_folder + "/" + device.id,
                          fmt::format("{} {}\n{}\n", device.type, device.parent, device.owner));
}

Result<VgpuDevice> VgpuSysfs::recorded(const std::string& device) const {
  const Error unknown =
      make_error(ErrorKind::kPermission, fmt::format("vGPU {} was not created here", device),
                 "whoever created it removes it");
  if (!is_device_name(device)) {
    return unknown;
  }
  const Result<std::string> text = os::read_whole_file(options_.state_folder + "/" + device);
  if (!text.ok()) {
    return unknown;
  }
  const auto lines = split(*text, '\n');
  const auto words = split(lines[0], ' ');
  const auto type = parse_uint(words[0]);
  if (lines.size() < 2 || words.size() != 2 || !type) {
    return make_error(ErrorKind::kFailed, fmt::format("the record of vGPU {} is damaged", device));
  }
  return VgpuDevice{device, std::string(words[1]), static_cast<unsigned>(*type),
                    std::string(lines[1])};
}

Result<Ok> VgpuSysfs::remove(const std::string& device, const std::string& owner) {
  const Result<VgpuDevice> known = recorded(device);
  SEPTET_TRY(known);
  if (known->owner != owner) {
    return make_error(ErrorKind::kPermission,
                      fmt::format("vGPU {} belongs to {}", device, known->owner));
  }
  const std::string mdev = fmt::format("{}/sys/bus/mdev/devices/{}", options_.root, device);
  const std::string current = device_folder(device) + "/nvidia/current_vgpu_type";
  if (fs::exists(mdev)) {
    SEPTET_TRY(options_.write(mdev + "/remove", "1"));
    if (fs::exists(mdev)) {
      return make_error(ErrorKind::kPrecondition, fmt::format("vGPU {} is in use", device),
                        "end its virtual machine first");
    }
  } else if (read_number(current) == known->type) {
    // Another type there means that the function is somebody else's by now.
    SEPTET_TRY(options_.write(current, "0"));
    if (read_number(current) != 0U) {
      return make_error(ErrorKind::kPrecondition, fmt::format("vGPU {} is in use", device),
                        "end its virtual machine first");
    }
  }
  return os::remove_file(options_.state_folder + "/" + device);
}

Result<std::vector<VgpuDevice>> VgpuSysfs::devices() const {
  std::vector<VgpuDevice> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.state_folder, error)) {
    const std::string name = entry.path().filename();
    if (is_device_name(name)) {
      Result<VgpuDevice> device = recorded(name);
      SEPTET_TRY(device);
      list.push_back(*std::move(device));
    }
  }
  std::sort(list.begin(), list.end(),
            [](const VgpuDevice& a, const VgpuDevice& b) { return a.id < b.id; });
  return list;
}

}  // namespace septet::partition
