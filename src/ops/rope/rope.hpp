// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"
#include "ops/rope_angles/rope_angles.hpp"

namespace consonant {

struct RopeAttr {
  int64_t dims = 0;
  bool neighbours = true;
};

// Turns the first `dims` numbers of each head of x [token, head, dim] by the angles of its token's position:
// (a, b) -> (a cos - b sin, b cos + a sin) for each pair; the rest passes unchanged. Float32.
Tensor rope(Tensor x, Tensor pos, const Rotary& rotary, Location at = Location::current());

}  // namespace consonant
