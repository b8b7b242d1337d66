// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// max(x, 0), float32.
Tensor relu(Tensor x, Location at = Location::current());

}  // namespace consonant
