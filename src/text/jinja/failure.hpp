// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace consonant::jinja {

// What went wrong in a template, in Python's classes: some filters catch some of them, as jinja2's do.
enum class Fault {
  syntax,
  type,
  value,
  overflow,
  zero_division,
  lookup,
  undefined,
  security,
  runtime,
  refused,      // raise_exception(message)
  limit,        // more output, memory, steps or nesting than a template gets
  unsupported,  // Python would do it, this interpreter doesn't
};

// Thrown while a template is read or run; jinja::Template turns it into an Error that names the line.
class Failure : public std::runtime_error {
 public:
  Failure(Fault fault, const std::string& what, int line = 0) : std::runtime_error(what), fault(fault), line(line) {}
  Fault fault;
  int line;  // 0: where the interpreter stands
};

template <class... Args>
[[noreturn]] void fail(Fault fault, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fault, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_at(int line, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(Fault::syntax, fmt::format(format, std::forward<Args>(args)...), line);
}

// What a template may use. They are far above what a chat needs and keep a hostile template from taking the process
// down.
struct Limits {
  size_t output = size_t{64} << 20;   // bytes of the rendered text, and of any one string
  size_t memory = size_t{512} << 20;  // bytes of values alive at one time
  int64_t steps = 50'000'000;         // evaluated nodes; long strings and lists count for more
  int value_depth = 100;              // lists within lists
  int call_depth = 1000;              // nodes being evaluated at one time
};
inline constexpr int max_node_depth = 300;      // of the syntax tree
inline constexpr int max_parse_depth = 400;     // of the parser's recursion: a bracket takes four
inline constexpr int64_t max_range = 100'000;   // as jinja2's sandbox
inline constexpr size_t max_source = 1u << 20;  // bytes of a template

}  // namespace consonant::jinja
