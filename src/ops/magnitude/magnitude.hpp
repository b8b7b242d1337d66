// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// sqrt(re^2 + im^2), float32: x [..., 2 n] holds n real parts, then n imaginary ones -> [..., n].
Tensor magnitude(Tensor x, Location at = Location::current());

}  // namespace consonant
