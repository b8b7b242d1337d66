// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor gated(Activation activation, Tensor gate, Tensor x, Location at) {
  if (gate.shape() != x.shape()) shape_error("gated", "two equal shapes", {gate, x}, at);
  return {make_node(id(Op::gated), "gated", {gate, x}, {dense(DType::f32, x.shape())}, GatedAttr{activation}, at), 0};
}

}  // namespace consonant
