// The owner tag: names the process that made a thing (a control group, a folder), so that what it
// left behind when it was killed can be told from what is in use.
//
//   PIDNAMESPACE.PID.STARTTIME
//
// The start time tells a process from a later one with its number; the namespace tells whether its
// number means anything from here.
#pragma once

#include <string>
#include <string_view>

namespace septet::os {

// The tag of this process.
std::string owner_tag();

// Whether the tag is one of our pid namespace and its process has ended. False for anything that is
// no tag.
bool owner_is_gone(std::string_view tag);

}  // namespace septet::os
