// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/inputs.hpp"

namespace consonant {

struct AttendWeightsAttr {
  float scale = 1;
  std::vector<int64_t> heads;  // of q
  int64_t positions = 0;
};

// What attend multiplies the values with, for some of the heads: softmax(scale q k^T) over the first `positions`
// positions, all of which every token sees -> [token, chosen head, position] float32. q [token, head, dim], keys
// [page, kv head, dim, 64]; seq [token] and pages [sequence, page] as in a mask.
Tensor attend_weights(Tensor q, Tensor keys, const Mask& mask, int64_t positions, float scale,
                      const std::vector<int64_t>& heads, Location at = Location::current());

}  // namespace consonant
