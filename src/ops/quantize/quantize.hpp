// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// x [token, n] float32 -> the same in 8 bits (DType::q8_x, see tensor/activations.hpp); n a multiple of 32.
// Per block of 32: scale = max |x| / 127, q = x / scale rounded to nearest even.
Tensor quantize(Tensor x, Location at = Location::current());

}  // namespace consonant
