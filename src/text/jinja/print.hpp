// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.hpp"

namespace consonant::jinja {

// Python's str() and repr().
std::string to_text(const Value& v);
std::string repr(const Value& v);
std::string repr_string(std::string_view text);
std::string repr_real(double d);
// The text as a value, with markup kept as such (jinja2's soft_str).
Value soft_text(Heap& heap, const Value& v);
// & < > ' " as HTML entities.
std::string escape_html(std::string_view text);
// markupsafe.escape(): markup, and markup stays as it is.
Value escape(Heap& heap, const Value& v);

struct JsonStyle {
  bool ascii = false;
  bool sort = false;
  bool pretty = false;  // on lines, indented by `indent` a level
  std::string indent;
  std::string item_end = ", ", key_end = ": ";
};
// Python's json.dumps().
std::string to_json(const Value& v, const JsonStyle& style);

}  // namespace consonant::jinja
