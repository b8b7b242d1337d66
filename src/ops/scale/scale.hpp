// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct ScaleAttr {
  float factor = 1;
};

// x times a constant, float32.
Tensor scale(Tensor x, float factor, Location at = Location::current());

}  // namespace consonant
