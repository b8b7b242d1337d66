// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/value.hpp"

namespace consonant::jinja {

// The variables of one run of a function: of the template, a macro, a call block or the body of a recursive loop.
// `outer` is the frame of the function that it was written in.
struct Frame : Object {
  Frame(size_t slots, Ref<Frame> o) : slots(slots), outer(std::move(o)) {}
  void drop() override {
    slots.clear();
    outer = Ref<Frame>();
  }
  std::vector<Value> slots;
  Ref<Frame> outer;
};

// A macro, or the body of a call block, with the variables it was written among.
struct Macro : Object {
  Macro(const MacroNode& n, Ref<Frame> o) : node(n), outer(std::move(o)) {}
  const MacroNode& node;
  const Ref<Frame> outer;
};

// `loop`. It reads one item ahead only when asked for what lies ahead, as the test of a filtered loop may depend on
// what the body has done by then.
struct Loop : Object {
  Loop(Ref<Iterator> i, int64_t l, int d) : items(std::move(i)), length(l), depth0(d) {}
  bool advance();  // to the next item, in `current`
  bool peek();     // whether there is one, in `after`
  int64_t size();
  void drop() override;

  Ref<Iterator> items;
  int64_t length;  // -1: not known yet
  const int depth0;
  int64_t index0 = -1;
  Value before, current, after;
  Value changed;  // the arguments of the last loop.changed(): a tuple
  // Of a recursive loop: what loop(items) runs.
  const ForNode* node = nullptr;
  Ref<Frame> outer;
};

}  // namespace consonant::jinja
