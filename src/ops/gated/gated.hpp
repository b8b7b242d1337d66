// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"
#include "ops/activation.hpp"

namespace consonant {

struct GatedAttr {
  Activation activation = Activation::silu;
};

// activation(gate) * x, float32, equal shapes: what fusion makes of mul(silu(gate), x) and mul(gelu(gate), x)
// (SwiGLU and GeGLU, Shazeer 2020).
Tensor gated(Activation activation, Tensor gate, Tensor x, Location at = Location::current());

}  // namespace consonant
