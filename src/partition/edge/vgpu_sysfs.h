// VgpuSysfs: lists, creates and removes vGPUs through the kernel's files, in both layouts.
//
//   mdev          DEVICES/<PF or VF>/mdev_supported_types/nvidia-<id>/{name,available_instances,
//                 create}; the device appears as ROOT/sys/bus/mdev/devices/<uuid>/remove
//   vendor VFIO   DEVICES/<VF>/nvidia/{current_vgpu_type,creatable_vgpu_types}; 0 = none
//
// DEVICES is ROOT/sys/bus/pci/devices; a PF names its VFs by virtfnN links. An invalid write resets
// a VF's type, and a VF is used again by others: so a type is checked before it is written and read
// back after, and who created a device is recorded in STATE and is the only one to remove it. One
// thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace septet::partition {

struct VgpuType {
  unsigned id = 0;
  std::string name;        // "NVIDIA A100-4C"
  unsigned available = 0;  // how many more could be created now
  bool operator==(const VgpuType&) const = default;
};

struct VgpuDevice {
  std::string id;      // mdev: UUID; vendor VFIO: PCI address of the VF
  std::string parent;  // PCI address of the function it is on
  unsigned type = 0;
  std::string owner;
  bool operator==(const VgpuDevice&) const = default;
};

enum class VgpuLayout { kMdev, kVendorVfio };

struct VgpuSysfsOptions {
  std::string root;          // "" on a real machine
  std::string state_folder;  // owner records
  // How a file is written; a test's hook plays the kernel. Absent: plainly.
  std::function<Result<Ok>(const std::string& path, const std::string& text)> write{};
};

class VgpuSysfs {
 public:
  explicit VgpuSysfs(VgpuSysfsOptions options);

  // kPrecondition when the card offers no vGPU (no host driver, no SR-IOV functions).
  Result<VgpuLayout> layout(const std::string& pci_address) const;
  // What the card offers now, ascending by id.
  Result<std::vector<VgpuType>> types(const std::string& pci_address) const;
  // kNoCapacity when the card cannot take one more of the type, kNotFound for an unknown type.
  Result<VgpuDevice> create(const std::string& pci_address, unsigned type,
                            const std::string& owner);
  // kPermission when another owner created it or nobody is recorded.
  Result<Ok> remove(const std::string& device, const std::string& owner);
  // The recorded devices, ascending by id.
  Result<std::vector<VgpuDevice>> devices() const;

 private:
  // The function itself and its virtual functions, as PCI addresses.
  std::vector<std::string> functions_of(const std::string& pci_address) const;
  std::string device_folder(const std::string& pci_address) const;
  Result<VgpuDevice> create_mdev(const std::vector<std::string>& functions, unsigned type);
  Result<VgpuDevice> create_vendor(const std::vector<std::string>& functions, unsigned type);
  Result<VgpuDevice> recorded(const std::string& device) const;
  Result<Ok> record(const VgpuDevice& device);

  VgpuSysfsOptions options_;
};

// Where a licence is missing, the guest slows down over time: said with every vGPU.
inline constexpr const char* kVgpuLicenceWarning =
    "the guest needs a vGPU licence; without one its performance is throttled over time";

}  // namespace septet::partition
