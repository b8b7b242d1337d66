// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// x, or exp(x) - 1 below zero, float32 (Clevert et al. 2015).
Tensor elu(Tensor x, Location at = Location::current());

}  // namespace consonant
