// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct ClampAttr {
  float least = 0, most = 0;
};

// x where it lies between the two, else the nearer of them, float32; what is no number stays.
Tensor clamp(Tensor x, float least, float most, Location at = Location::current());

}  // namespace consonant
