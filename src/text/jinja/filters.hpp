// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "text/jinja/library.hpp"

namespace consonant::jinja {

// jinja2's filters: `self` is the value that is filtered.
std::span<const NativeEntry> text_filters();    // of texts and numbers
std::span<const NativeEntry> item_filters();    // of sequences and mappings
std::span<const NativeEntry> choice_filters();  // map, select and their kin, which look up and test items

// What `attribute="a.b.0"` of a filter finds in an item.
class AttributePath {
 public:
  explicit AttributePath(const Value& attribute);  // none: the item itself
  Value find(Interpreter& in, Value item, const Value* otherwise = nullptr) const;

 private:
  std::vector<std::pair<std::string, Value>> parts_;  // a name, or an index
};

// Lower case, as filters that ignore case compare; other values as they are.
Value ignore_case(Heap& heap, const Value& v);

}  // namespace consonant::jinja
