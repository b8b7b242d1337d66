// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// What lies before the first row of a group and after its last: zeros, or its rows mirrored at that row (x[-i] = x[i]).
enum class Edge : uint8_t { zeros, mirror };

struct PatchesAttr {
  int64_t kernel = 1, stride = 1;
  int64_t before = 0, after = 0;  // rows there
  Edge edge = Edge::zeros;
};

// The patches that a convolution over the rows of each group looks at: x [group, time, n] float32 of a fixed size ->
// [group * frames, kernel * n], frames = (before + time + after - kernel) / stride + 1. Patch f of a group is its rows
// f * stride - before ... one after another, `kernel` of them.
Tensor patches(Tensor x, const PatchesAttr& attr, Location at = Location::current());

}  // namespace consonant
