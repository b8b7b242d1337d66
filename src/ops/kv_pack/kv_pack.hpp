// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "graph/inputs.hpp"

namespace consonant {

struct KvPackAttr {
  DType type = DType::f32;
};

// k and v [position, head, dim] of one sequence in the layout of the cache, as values of this step that nothing keeps:
// keys [page, head, dim, 64] and values [page, head, 64, dim] in float32 or float16, position p on page p / 64. What
// attention without a cache reads. Positions past the last are zeros.
std::pair<Tensor, Tensor> kv_pack(Tensor k, Tensor v, DType type, Location at = Location::current());

}  // namespace consonant
