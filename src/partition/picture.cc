#include "partition/picture.h"

#include <fmt/format.h>

#include <algorithm>

namespace septet::partition {
namespace {

constexpr std::size_t kUnitWidth = 10;  // "[1g.10gb+]" with a mark

struct Box {
  gpu::Placement placement;
  std::string text;
};

std::string ruler(unsigned units) {
  std::string line = "unit    ";
  for (unsigned unit = 0; unit < units; ++unit) {
    line += fmt::format("{:<{}}", unit, kUnitWidth);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string draw_row(const char* title, std::vector<Box> boxes, unsigned units) {
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.placement < b.placement; });
  std::string line = fmt::format("{:<8}", title);
  unsigned at = 0;
  for (const Box& box : boxes) {
    line.append((box.placement.start - at) * kUnitWidth, ' ');
    const std::size_t inside = box.placement.size * kUnitWidth - 2;
    line += fmt::format("[{:<{}.{}}]", box.text, inside, inside);
    at = box.placement.end();
  }
  line.append((units - std::min(at, units)) * kUnitWidth, ' ');
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string draw_plan(const GpuPlan& plan) {
  std::vector<Box> before;
  std::vector<Box> after;
  for (const KeptInstance& kept : plan.plan.keep) {
    const std::string mark = kept.occupancy == Occupancy::kBusy ? "! " : "";
    before.push_back({kept.instance.placement, mark + kept.profile});
    after.push_back({kept.instance.placement, mark + kept.profile});
  }
  for (const DestroyedInstance& gone : plan.plan.destroy) {
    before.push_back({gone.instance.placement, "x " + gone.profile});
  }
  for (const CreatedInstance& fresh : plan.plan.create) {
    after.push_back({fresh.placement, "+ " + fresh.profile});
  }
  const unsigned units = plan.space.units();
  return ruler(units) + draw_row("before", std::move(before), units) +
         draw_row("after", std::move(after), units);
}

std::string draw_layout(const Layout& layout, unsigned units) {
  std::vector<Box> boxes;
  for (const LayoutInstance& instance : layout.instances) {
    boxes.push_back({instance.placement, instance.profile});
  }
  return ruler(units) + draw_row("has", std::move(boxes), units);
}

}  // namespace septet::partition
