// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu_erf/gelu_erf.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor gelu_erf(Tensor x, Location at) {
  return {make_node(id(Op::gelu_erf), "gelu_erf", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
