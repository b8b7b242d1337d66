// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// exp(x) / sum(exp(x)) over the last dimension, float32. Minus infinity gives 0, and a row of nothing else gives zeros;
// a row with a NaN or an infinity is NaN all over.
Tensor softmax(Tensor x, Location at = Location::current());

}  // namespace consonant
