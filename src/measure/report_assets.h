// The style and the script of the report page, as text that goes into the page.
#pragma once

#include <string_view>

namespace septet::measure {

// CSS. Colours are variables of :root; a dark scheme replaces them, print takes the light ones.
std::string_view report_style();
// JavaScript: values beside the pointer, and the switch between linear and logarithmic charts. The
// page is complete without it.
std::string_view report_script();

}  // namespace septet::measure
