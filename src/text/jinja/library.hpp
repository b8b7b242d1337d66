// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "text/jinja/args.hpp"

namespace consonant::jinja {

class Interpreter;

// What templates can call: jinja2's filters, tests and globals, and the methods that Python's types have.

bool has_filter(std::string_view name);
bool has_test(std::string_view name);
Value call_filter(Interpreter& in, std::string_view name, const Value& subject, const Args& args);
bool call_test(Interpreter& in, std::string_view name, const Value& subject, const Args& args);

// A global by its name, or missing.
Value global(Interpreter& in, const std::string& name);

using Native = Value (*)(Interpreter& in, const Value& self, const Bound& args);

struct NativeEntry {
  std::string_view name;
  std::string_view signature;
  Native run;
};

struct Function : Object {
  Function(const NativeEntry& e, Value s) : entry(e), self(std::move(s)) {}
  const NativeEntry entry;
  const Value self;  // of a bound method
};
Value bind(Heap& heap, const NativeEntry& entry, const Value& self);

// The method of that name of a value of Python's own types, bound to it; missing if the type has none. A method that
// Python has and this doesn't is an error; one that would change the value is an undefined value, as in the sandbox.
Value find_method(Interpreter& in, const Value& self, std::string_view name);
const NativeEntry* find_string_method(std::string_view name);
// text.replace(from, to, most); most < 0: all.
std::string replaced(Heap& heap, std::string_view text, std::string_view from, std::string_view to, int64_t most);

// string % values, and string.format(...).
Value format_printf(Interpreter& in, const Value& format, const Value& values);
Value format_braces(Interpreter& in, const Value& format, const Args& args);
// format(value, spec)
std::string format_value(const Value& value, std::string_view spec);

// Python's int() and float() of a text; false if it isn't one. An integer beyond 64 bits is an error.
bool parse_integer(std::string_view text, int64_t base, int64_t& value);
bool parse_real(std::string_view text, double& value);

}  // namespace consonant::jinja
