// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// 1 / (1 + exp(-x)), float32.
Tensor sigmoid(Tensor x, Location at = Location::current());

}  // namespace consonant
