// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// What a token's experts made, weighed and summed in their order: x [token, used, n], weights [token, used] float32 ->
// [token, n], y = fma(x[used - 1], weights[used - 1], ... fma(x[0], weights[0], 0)), plus residual [token, n] float32
// if there is one.
Tensor mix(Tensor x, Tensor weights, Tensor residual = {}, Location at = Location::current());

}  // namespace consonant
