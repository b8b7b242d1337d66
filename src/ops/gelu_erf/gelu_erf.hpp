// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// x Phi(x) = x / 2 (1 + erf(x / sqrt(2))), float32: GELU itself (Hendrycks and Gimpel 2016).
Tensor gelu_erf(Tensor x, Location at = Location::current());

}  // namespace consonant
