// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct LayerNormAttr {
  float epsilon = 0;
};

// (x - mean(x)) / sqrt(variance(x) + epsilon) * w + b over the last dimension, float32, with the variance of the
// population (Ba et al. 2016); w and b [n].
Tensor layer_norm(Tensor x, Tensor w, Tensor b, float epsilon, Location at = Location::current());

}  // namespace consonant
