// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct PoolAttr {
  bool scores = false;
};

// Statistics of each channel over all rows (Okabe et al. 2018): x [row, n] of a fixed size -> [2, n], the mean and the
// standard deviation,
//
//   mean = sum_t p[t] x[t],  deviation = sqrt(max(sum_t p[t] (x[t] - mean)^2, 1e-12))
//
// with p = 1 / rows, or with `scores` [row, n] their softmax over the rows, a channel by itself. Float32.
Tensor pool(Tensor x, Location at = Location::current());
Tensor pool(Tensor x, Tensor scores, Location at = Location::current());

}  // namespace consonant
