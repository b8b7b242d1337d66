// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/patches/patches.hpp"

namespace consonant {

struct CarryAttr {
  Edge edge = Edge::zeros;
};

// Rows of a stream with those that came before them, as a causal convolution looks at them:
//
//   y [kept + row, n] = the last `kept` rows of the stream before x, then x [row, n]
//
// in float32 and of a fixed size. They come from the stream's slot of `state` [slot, kept, n], number slot[0], and the
// last rows of y replace them there. The stream begins with x where pos[0] is 0: the slot isn't looked at then, and
// what comes before is zeros, or x's first row again (Edge::repeat).
Tensor carry(Tensor& state, Tensor x, Tensor pos, Tensor slot, Edge edge = Edge::zeros,
             Location at = Location::current());

}  // namespace consonant
