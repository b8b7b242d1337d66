// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// x / (1 + exp(-x)), float32 (Elfwing et al. 2017).
Tensor silu(Tensor x, Location at = Location::current());

}  // namespace consonant
