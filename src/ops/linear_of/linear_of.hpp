// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"
#include "ops/activation.hpp"

namespace consonant {

// Inputs of a node: ids, x, w, and the second w of a gated one.
struct LinearOfAttr {
  bool gated = false;
  Activation activation = Activation::silu;
};

// The linear layers of the experts that each token goes to: ids [token, used] i32, x [token, inputs], which all of a
// token's experts read, or [token, used, inputs], w [expert, outputs, inputs] of any weight type -> [token, used,
// outputs] float32, y[t, u] = x[t] w[ids[t, u]]^T with the sums of `linear`.
Tensor linear_of(Tensor ids, Tensor x, Tensor w, Location at = Location::current());

// activation(linear_of(ids, x, gate)) * linear_of(ids, x, up), gate and up of equal shape: what fusion makes of these
// on accelerators.
Tensor linear_of_gated(Activation activation, Tensor ids, Tensor x, Tensor gate, Tensor up,
                       Location at = Location::current());

}  // namespace consonant
