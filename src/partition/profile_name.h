// ProfileName: the parts of a MIG profile's name, in every form in use.
//
//   1c.3g.20gb+me.all,gfx
//   |  |  |    +- attributes, after one '+' or one '-'
//   |  |  +------ memory of the GPU instance, rounded
//   |  +--------- compute slices of the GPU instance
//   +------------ compute slices of the compute instance; left out when it is the whole instance
//
// Values only. Names differ by driver and firmware (7g.79gb, 7g.80gb): they are hints, slices and
// attributes are what counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace septet::partition {

struct ProfileName {
  std::optional<unsigned> compute_slices;
  unsigned slices = 0;
  std::optional<unsigned> memory_gb;    // nothing in the short form "3g"
  char sign = '+';                      // of the attributes: '+' or '-'
  std::vector<std::string> attributes;  // lower case, sorted
  bool operator==(const ProfileName&) const = default;
};

// Understands "1g.5gb", "MIG 1g.5gb", "1c.2g.10gb", "3g", "1g+me", "1g.24gb-me", any letter case.
// Nothing when the text is no profile name: attributes are letters, digits and dots, do not start
// with a digit or a dot, do not end with a dot and do not repeat.
std::optional<ProfileName> parse_profile_name(std::string_view text);

// As the driver writes it.
std::string to_string(const ProfileName& name);

}  // namespace septet::partition
