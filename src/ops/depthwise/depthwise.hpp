// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// A convolution over rows, each channel by itself: x [row, n] of a fixed size, w [kernel * n] with tap k of channel c
// at k * n + c, b [n] -> [row - kernel + 1, n],
//
//   y[t, c] = b[c] + sum_k w[k, c] x[t + k, c]
//
// in float32.
Tensor depthwise(Tensor x, Tensor w, Tensor b, Location at = Location::current());

}  // namespace consonant
