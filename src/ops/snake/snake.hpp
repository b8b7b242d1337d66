// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// The activation of vocoders (Ziyin et al. 2020; Lee et al. 2023), a channel with a frequency and an amplitude of its
// own, both given as logarithms a and b [n]:
//
//   y[..., c] = x + sin(exp(a[c]) x)^2 / (exp(b[c]) + 1e-9)
//
// x [..., n], float32.
Tensor snake(Tensor x, Tensor a, Tensor b, Location at = Location::current());

}  // namespace consonant
