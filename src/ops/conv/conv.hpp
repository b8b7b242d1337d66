// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct ConvAttr {
  int64_t kernel = 1, stride = 1, dilation = 1;
  bool bias = false, residual = false;  // the inputs after x and w
};

// A convolution over rows, without padding: x [row, n] of a fixed size, w [outputs, kernel * n] of plain numbers with
// tap k of channel c at k * n + c -> [(row - dilation (kernel - 1) - 1) / stride + 1, outputs],
//
//   y[t, o] = sum_{k, c} w[o, k, c] x[stride t + dilation k, c] + b[o] + residual[t, o]
//
// in float32, in the order of w. b [outputs] and the residual may be left out.
Tensor conv(Tensor x, Tensor w, Tensor b, const ConvAttr& attr, Tensor residual = {},
            Location at = Location::current());

}  // namespace consonant
