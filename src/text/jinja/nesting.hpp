// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text/jinja/failure.hpp"

namespace consonant::jinja {

// One more level of evaluation, while it lives: what keeps a template from using up the stack.
class Nesting {
 public:
  Nesting(int& depth, int most) : depth_(depth) {
    if (depth_ >= most) fail(Fault::limit, "calls nested too deep");
    ++depth_;
  }
  Nesting(const Nesting&) = delete;
  ~Nesting() { --depth_; }

 private:
  int& depth_;
};

}  // namespace consonant::jinja
