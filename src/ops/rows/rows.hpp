// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// Rows of x by number: x [n, columns] of any type (a value in float32, or a weight, decoded), index [m] i32
// -> [m, columns] float32. A negative index stands for a row of zeros; others lie in 0 ... n - 1: whoever fills them
// checks.
Tensor rows(Tensor x, Tensor index, Location at = Location::current());

}  // namespace consonant
