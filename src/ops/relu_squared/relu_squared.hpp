// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// max(x, 0)^2, float32 (So et al. 2021).
Tensor relu_squared(Tensor x, Location at = Location::current());

}  // namespace consonant
