// Layouts and intents as JSON text: the journal, the desired layout, checkpoints.
//
//   {"septet_layout": 1, "gpu": "GPU-...", "gpu_name": "NVIDIA A100-SXM4-40GB",
//    "layout": {"mode": "enabled", "instances": [
//      {"profile_id": 9, "profile": "3g.20gb", "start": 4, "size": 4, "compute": [3]}]}}
//
// Free functions; any thread. A version that is not ours is refused, never guessed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "partition/layout.h"
#include "partition/transaction.h"

namespace septet::partition {

struct StoredLayout {
  gpu::GpuUuid gpu;
  std::string gpu_name;
  Layout layout;
  bool operator==(const StoredLayout&) const = default;
};

std::string write_stored_layout(const StoredLayout& stored);
// `file` is for messages: "file:line: why".
Result<StoredLayout> read_stored_layout(std::string_view text, const std::string& file);

// One line each, with the line end.
std::string write_intent_line(const Intent& intent);
std::string write_step_line(Direction direction, const ChangeStep& step);
// The intent of a journal; a last line without line end is what a crash cut off and is ignored.
Result<Intent> read_journal(std::string_view text, const std::string& file);

}  // namespace septet::partition
