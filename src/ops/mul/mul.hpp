// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// a * b, element by element, float32; b has a's shape, or is a vector [n] that meets every row of a [..., n].
Tensor mul(Tensor a, Tensor b, Location at = Location::current());

inline Tensor operator*(Located a, Tensor b) { return mul(std::move(a.value), std::move(b), a.at); }

}  // namespace consonant
