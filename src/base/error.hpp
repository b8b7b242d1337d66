// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace consonant {

// Exit codes of the program; every Error carries the one it ends the program with.
enum class Exit : int {
  done = 0,
  failed = 1,    // at run time
  usage = 2,     // wrong options
  input = 3,     // bad model, audio or text
  device = 4,    // the device can't run this model: what, and why
  bound = 5,     // a generation reached its bound without ending
  stalled = 6,   // the device stalled or was lost
  disagree = 7,  // backends disagree (verify)
  memory = 8,    // not enough memory, said before loading
  interrupted = 130
};

class Error : public std::runtime_error {
 public:
  Error(Exit exit, const std::string& what) : std::runtime_error(what), exit_(exit) {}
  Exit exit() const { return exit_; }

 private:
  Exit exit_;
};

// throw_error(Exit::input, "{}: {} tensors", path, n)
template <class... Args>
[[noreturn]] void throw_error(Exit exit, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(exit, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Exit::input, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void bad_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Exit::usage, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace consonant
