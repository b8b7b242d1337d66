// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// Sums of a row's numbers up to and with each: y[i] = x[0] + ... + x[i] over the last dimension, float32.
Tensor cumsum(Tensor x, Location at = Location::current());

}  // namespace consonant
