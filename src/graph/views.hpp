// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// More views: no work, the same storage seen otherwise. x is of a fixed size.

// Groups of rows one after another: [group, time, n] -> [group * time, n].
Tensor merge_rows(Tensor x, Location at = Location::current());
// Some neighbouring rows: [row, n] -> [count, n].
Tensor part_of_rows(Tensor x, int64_t first, int64_t count, Location at = Location::current());
// The only row, or the only column, as a vector: [1, n] or [n, 1] -> [n].
Tensor as_vector(Tensor x, Location at = Location::current());

}  // namespace consonant
