// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct GatedNormAttr {
  int64_t groups = 1;
  float epsilon = 0;
};

// Mamba-2's norm (Dao and Gu 2024): with u = x * silu(z), u / sqrt(mean(u^2) + epsilon) * w, the mean over each of
// `groups` equal parts of a row. x and z [..., n] float32, w [n].
Tensor gated_norm(Tensor x, Tensor z, Tensor w, int64_t groups, float epsilon, Location at = Location::current());

}  // namespace consonant
