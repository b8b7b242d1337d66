// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "graph/node.hpp"

namespace consonant {

struct TopKAttr {
  int64_t k = 0;
};

// The k greatest of each row in descending order and their columns: x [..., n] float32, k from 1 to n -> [..., k]
// float32 and [..., k] i32. Of equal numbers (-0 equals 0) that of the lower column comes first, on every device; NaNs
// come last.
std::pair<Tensor, Tensor> top_k(Tensor x, int64_t k, Location at = Location::current());

}  // namespace consonant
