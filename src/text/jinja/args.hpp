// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.hpp"

namespace consonant::jinja {

// The arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments matched with the parameters of a function of ours. A signature is the parameters' names with spaces
// between; `!` after a name: it must be given; `/` in front: none can be given by name; `*` alone: anything goes, and
// the function looks at `all`.
class Bound {
 public:
  Bound(std::string_view function, std::string_view signature, const Args& args);

  bool has(size_t i) const { return i < values_.size() && !values_[i].is(Kind::missing); }
  // Given, and not none.
  bool some(size_t i) const { return has(i) && !values_[i].is(Kind::none); }
  Value value(size_t i) const { return has(i) ? values_[i] : Value::none(); }
  int64_t integer(size_t i, int64_t otherwise = 0) const;
  bool boolean(size_t i) const { return has(i) && truth(values_[i]); }
  const std::string& text(size_t i) const;
  const std::string& function() const { return function_; }

  const Args& all;

 private:
  const std::string function_;
  std::vector<Value> values_;
};

// Python's __index__: an integer or a type error.
int64_t to_index(const Value& v);

}  // namespace consonant::jinja
