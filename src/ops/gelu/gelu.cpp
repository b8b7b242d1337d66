// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu/gelu.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor gelu(Tensor x, Location at) {
  return {make_node(id(Op::gelu), "gelu", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
