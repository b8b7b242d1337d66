// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// x [token, n] float32 -> the same in 8 bits (DType::q8_x, see tensor/activations.hpp) or in 16 (DType::q16_x); n a
// multiple of 32. Per block of 32: scale = max |x| / 127, q = x / scale rounded to nearest even; in 16 bits besides
// rest = (x - scale q) / (scale / 256), rounded likewise.
Tensor quantize(Tensor x, DType type = DType::q8_x, Location at = Location::current());

}  // namespace consonant
