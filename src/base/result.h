// Result<T>: a value, or the Error that says why there is none.
//
// A plain value type; any thread may use its own copy. Errors that are expected in operation travel
// as Result; programmer mistakes are CHECK (base/check.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace septet {

// The kinds a caller decides by. The number is the exit code of the program (docs: exit codes).
enum class ErrorKind {
  kFailed = 1,        // it was tried and did not work, or an assertion is false
  kUsage = 2,         // the words of the request are wrong
  kPrecondition = 3,  // in use, mode off, no driver: something must change first
  kVerification = 4,  // done, but reading back shows something else
  kResetNeeded = 5,   // waits for a GPU reset or a reboot
  kNotFound = 6,      // the named thing does not exist
  kPermission = 7,    // the caller may not
  kNoCapacity = 8,    // nothing free that fits
};

// The program's exit code for an error of this kind.
constexpr int exit_code(ErrorKind kind) { return static_cast<int>(kind); }

// The word used in machine-readable errors, e.g. "not_found".
const char* to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  std::string message;  // what was tried, on what, why it failed; no final full stop
  std::string hint;     // what to do next; may be empty

  // "message; hint", as printed behind "septet: ".
  std::string text() const { return hint.empty() ? message : message + "; " + hint; }

  bool operator==(const Error&) const = default;
};

// Success without a value, for Result<Ok>.
struct Ok {
  bool operator==(const Ok&) const = default;
};

// E is another value type where a protocol has its own error codes (inference/status.h).
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // The value; the caller has looked at ok().
  T& value() & {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // The error; the caller has looked at ok().
  const E& error() const {
    CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, E> state_;
};

inline Error make_error(ErrorKind kind, std::string message, std::string hint = {}) {
  return Error{kind, std::move(message), std::move(hint)};
}

}  // namespace septet

// Returns the error of an expression to the caller, or goes on.
#define SEPTET_TRY(expression)                                \
  do {                                                        \
    if (auto&& septet_try = (expression); !septet_try.ok()) { \
      return septet_try.error();                              \
    }                                                         \
  } while (false)
