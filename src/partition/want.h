// Want: what somebody asks to have on a GPU, as typed.
//
//   1g.5gb:7                  seven of them          7x1g.5gb is the same
//   3g.20gb 2g.10gb@4         one each, the 2g.10gb at unit 4
//   3g  1g+me                 by slices and attributes
//   >=10GB:2  >=2g:3          anything at least that large
//   1c.3g.20gb:2              two compute instances of one slice in one GPU instance
//   19,19,9:4                 nvidia-smi's ids; after an id a colon means the start
//
// Values; nothing here knows which profiles a GPU has (partition/profile_choice.h does).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"
#include "partition/profile_name.h"

namespace septet::partition {

// Names one kind of profile, or any that is large enough. Exactly one of the four is meant.
struct ProfileSelector {
  std::string text;  // as typed, for messages
  std::optional<gpu::ProfileId> id{};
  std::optional<ProfileName> name{};
  std::optional<unsigned> at_least_memory_gb{};
  std::optional<unsigned> at_least_slices{};
  bool operator==(const ProfileSelector&) const = default;
};

struct WantItem {
  ProfileSelector profile;
  unsigned count = 1;
  std::optional<unsigned> start;  // only with count 1
  bool operator==(const WantItem&) const = default;
};

struct Want {
  std::vector<WantItem> items;
  bool operator==(const Want&) const = default;
};

// No GPU has more instances than this; a larger count is a typing error.
inline constexpr unsigned kMostInstances = 128;

// The forms above; words may also hold several items separated by commas. kUsage says which item.
Result<Want> parse_want(std::span<const std::string> words);
// The argument of `nvidia-smi mig -cgi`: ids or names, and a colon always means the start.
Result<Want> parse_nvidia_smi_list(std::string_view text);
// One profile in the forms above, without count and start.
Result<ProfileSelector> parse_profile_selector(std::string_view text);

}  // namespace septet::partition
