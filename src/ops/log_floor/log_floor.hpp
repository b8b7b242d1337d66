// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct LogFloorAttr {
  float least = 0;
};

// The natural logarithm of max(x, least), least > 0, float32.
Tensor log_floor(Tensor x, float least, Location at = Location::current());

}  // namespace consonant
