// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct RootAttr {
  float plus = 0;
};

// sqrt(x + plus), float32.
Tensor root(Tensor x, float plus, Location at = Location::current());

}  // namespace consonant
