// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/node.hpp"

namespace consonant {

// Columns side by side: parts [row, n_i] -> [row, n_0 + n_1 + ...], float32. Parts of one row stand beside every row of
// the others.
Tensor beside(const std::vector<Tensor>& parts, Location at = Location::current());

}  // namespace consonant
