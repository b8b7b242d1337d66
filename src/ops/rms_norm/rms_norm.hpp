// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct RmsNormAttr {
  float epsilon = 0;
};

// x / sqrt(mean(x^2) + epsilon) * w over the last dimension, float32 (Zhang and Sennrich 2019); w [n].
Tensor rms_norm(Tensor x, Tensor w, float epsilon, Location at = Location::current());

}  // namespace consonant
