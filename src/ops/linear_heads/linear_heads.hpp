// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// A linear layer of its own for each head: y[t, h] = x[t, h] w[h]^T; x [token, head, inputs] float32, w [head, outputs,
// inputs] of any weight type -> [token, head, outputs] float32. Weights are decoded and multiplied in float32, in the
// order of the inputs.
Tensor linear_heads(Tensor x, Tensor w, Location at = Location::current());

}  // namespace consonant
