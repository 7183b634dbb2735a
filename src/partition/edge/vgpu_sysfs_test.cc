// A tree of files with the kernel's names; a hook plays what the kernel does at a write.
#include "partition/edge/vgpu_sysfs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace septet::partition {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCard = "0000:07:00.0";

class VgpuSysfsTest : public ::testing::Test {
 protected:
  VgpuSysfsTest() {
    std::string pattern = fs::temp_directory_path() / "septet-vgpu-XXXXXX";
    root_ = mkdtemp(pattern.data());
    fs::create_directories(folder(kCard));
  }
  ~VgpuSysfsTest() override { fs::remove_all(root_); }

  std::string folder(const std::string& address) const {
    return root_ + "/sys/bus/pci/devices/" + address;
  }
  static void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  static std::string get(const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  // A card of the mdev layout with room for two of type 474.
  void make_mdev_card() {
    const std::string type = folder(kCard) + "/mdev_supported_types/nvidia-474";
    put(type + "/name", "NVIDIA A100-20C\n");
    put(type + "/available_instances", "2\n");
    put(type + "/create", "");
  }

  // A card with two virtual functions of the vendor layout.
  void make_vendor_card() {
    for (int i = 0; i < 2; ++i) {
      const std::string function = fmt::format("0000:07:00.{}", i + 4);
      put(folder(function) + "/nvidia/current_vgpu_type", "0\n");
      put(folder(function) + "/nvidia/creatable_vgpu_types",
          "ID    : vGPU Name\n1414  : NVIDIA H200X-1-18C\n");
      fs::create_symlink("../" + function, folder(kCard) + fmt::format("/virtfn{}", i));
    }
  }

  Result<Ok> kernel(const std::string& path, const std::string& text) {
    const fs::path file = path;
    if (file.filename() == "create") {
      put(root_ + "/sys/bus/mdev/devices/" + text + "/remove", "");
      const std::string available = file.parent_path() / "available_instances";
      put(available, std::to_string(*parse_int(trim(get(available))) - 1));
    } else if (file.filename() == "remove") {
      fs::remove_all(file.parent_path());
    } else if (file.filename() == "current_vgpu_type") {
      // An invalid write resets the type.
      const bool is_known = text == "0" || text == "1414";
      put(path, refuses_ || !is_known ? "0\n" : text + "\n");
    }
    return Ok{};
  }

  VgpuSysfs sysfs() {
    return VgpuSysfs(
        {.root = root_,
         .state_folder = root_ + "/state",
         .write = [this](const auto& path, const auto& text) { return kernel(path, text); }});
  }

  std::string root_;
  bool refuses_ = false;
};

TEST_F(VgpuSysfsTest, ACardWithoutTheHostDriverOffersNone) {
  EXPECT_EQ(sysfs().types(kCard).error().kind, ErrorKind::kPrecondition);
  EXPECT_EQ(sysfs().types("0000:99:00.0").error().kind, ErrorKind::kNotFound);
}

TEST_F(VgpuSysfsTest, MdevListsCreatesAndRemoves) {
  make_mdev_card();

  EXPECT_EQ(*sysfs().types(kCard), (std::vector<VgpuType>{{474, "NVIDIA A100-20C", 2}}));
  const auto device = sysfs().create(kCard, 474, "ada");
  ASSERT_TRUE(device.ok()) << device.error().text();
  EXPECT_EQ(sysfs().types(kCard)->front().available, 1U);
  EXPECT_EQ(*sysfs().devices(), std::vector<VgpuDevice>{*device});

  const auto removed = sysfs().remove(device->id, "ada");

  ASSERT_TRUE(removed.ok()) << removed.error().text();
  EXPECT_TRUE(sysfs().devices()->empty());
}

TEST_F(VgpuSysfsTest, VendorLayoutTakesAFreeFunctionAndReadsBack) {
  make_vendor_card();

  const auto first = sysfs().create(kCard, 1414, "ada");
  const auto second = sysfs().create(kCard, 1414, "bob");
  const auto third = sysfs().create(kCard, 1414, "eve");

  ASSERT_TRUE(first.ok()) << first.error().text();
  EXPECT_EQ(first->id, "0000:07:00.4");
  EXPECT_EQ(second->id, "0000:07:00.5");
  EXPECT_EQ(third.error().kind, ErrorKind::kNoCapacity);
}

TEST_F(VgpuSysfsTest, AnUnknownTypeIsNeverWritten) {
  make_vendor_card();

  const auto device = sysfs().create(kCard, 9999, "ada");

  EXPECT_EQ(device.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(get(folder("0000:07:00.4") + "/nvidia/current_vgpu_type"), "0\n");
}

TEST_F(VgpuSysfsTest, ATypeThatDoesNotStickIsFound) {
  make_vendor_card();
  refuses_ = true;

  EXPECT_EQ(sysfs().create(kCard, 1414, "ada").error().kind, ErrorKind::kVerification);
}

TEST_F(VgpuSysfsTest, OnlyItsOwnerRemovesADevice) {
  make_vendor_card();
  const auto device = sysfs().create(kCard, 1414, "ada");
  ASSERT_TRUE(device.ok());

  EXPECT_EQ(sysfs().remove(device->id, "bob").error().kind, ErrorKind::kPermission);
  EXPECT_EQ(sysfs().remove("0000:07:00.5", "bob").error().kind, ErrorKind::kPermission);
  EXPECT_EQ(sysfs().remove("../../etc/passwd", "bob").error().kind, ErrorKind::kPermission);

  EXPECT_EQ(get(folder("0000:07:00.4") + "/nvidia/current_vgpu_type"), "1414\n");
}

TEST_F(VgpuSysfsTest, AFunctionThatIsSomebodyElsesByNowIsLeftAlone) {
  make_vendor_card();
  const auto device = sysfs().create(kCard, 1414, "ada");
  ASSERT_TRUE(device.ok());
  // Reset and given a different type behind our back.
  put(folder(device->id) + "/nvidia/current_vgpu_type", "1428\n");

  ASSERT_TRUE(sysfs().remove(device->id, "ada").ok());

  EXPECT_EQ(get(folder(device->id) + "/nvidia/current_vgpu_type"), "1428\n");
}

}  // namespace
}  // namespace septet::partition
