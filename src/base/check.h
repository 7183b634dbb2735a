// CHECK(condition) states what the programmer guarantees; it is on in every build.
//
// Errors expected in operation are Result<T> (base/result.h), never CHECK.
#pragma once

namespace septet {

// Prints the broken guarantee to stderr and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace septet

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::septet::check_failed(#condition, __FILE__, __LINE__))
