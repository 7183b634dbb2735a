// What the verbs about layouts share: which GPUs are meant, and plans and reports as documents.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu_view.h"
#include "output.h"
#include "partition/edge/apply.h"
#include "partition/gpu_plan.h"
#include "verbs.h"

namespace septet::app {

// The words of `plan` and `apply`.
struct LayoutWords {
  std::vector<std::string> want;
  std::string nvidia_smi_list;    // --cgi
  std::vector<std::string> gpus;  // --gpu; none: the only one
  bool add = false;
  bool move = false;
  bool explain = false;
  bool pack = false;
  bool spread = false;
  std::string file;   // mig-parted's configuration
  std::string label;  // in it
  std::optional<unsigned> drain_seconds;
};

void add_gpu_option(CLI::App& verb, std::vector<std::string>& gpus);
void add_drain_option(CLI::App& verb, std::optional<unsigned>& drain_seconds);
void add_layout_words(CLI::App& verb, LayoutWords& words);

partition::PlanOptions plan_options(const LayoutWords& words);

// What each GPU shall have, planned for all before any is changed.
struct GpuGoal {
  const gpu::GpuState* state = nullptr;  // in the view
  partition::GpuPlan plan;               // not used when the mode goes off
  partition::Layout layout;
};
Result<std::vector<GpuGoal>> goals_of(const GpuView& view, const LayoutWords& words);

// The driver and the GPUs that are meant. Without a selector the node must have exactly one GPU,
// unless `all` says that all are meant then.
enum class WithoutSelector { kOnlyOne, kAll };
Result<GpuView> read_chosen_gpus(const Globals& globals, const std::vector<std::string>& selectors,
                                 WithoutSelector without = WithoutSelector::kOnlyOne);
// All of them where a file or a distribution names the GPUs.
WithoutSelector without_selector(const LayoutWords& words);

// Adds one GPU's plan to the document's "gpus" and its steps to the table's rows.
void add_plan(Document& document, const gpu::GpuState& state, const partition::GpuPlan& plan);
void add_report(Document& document, const partition::ApplyReport& report);
Document plan_document(const gpu::DriverInfo& info);
Document report_document(const gpu::DriverInfo& info);

partition::ApplyOptions apply_options(const gpu::DriverInfo& info, const LayoutWords& words);

// Applies to each GPU, prints what became of all, and returns the exit code of the first failure.
using ApplyToGpu = std::function<Result<partition::ApplyReport>(const GpuGoal&)>;
int report_all(const Globals& globals, const GpuView& view, const LayoutWords& words,
               const std::vector<GpuGoal>& goals, const ApplyToGpu& apply);

// Whether the user agrees to losing these instances; asked only on a terminal and without --yes.
bool agrees(const Globals& globals, const partition::GpuPlan& plan);

}  // namespace septet::app
