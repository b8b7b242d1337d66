// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// The hyperbolic tangent, float32.
Tensor tanh(Tensor x, Location at = Location::current());

}  // namespace consonant
