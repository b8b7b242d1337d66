// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), float32: the tanh form of GELU (Hendrycks and Gimpel 2016).
Tensor gelu(Tensor x, Location at = Location::current());

}  // namespace consonant
