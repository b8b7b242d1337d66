// SPDX-License-Identifier: Apache-2.0
#include "ops/silu/silu.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor silu(Tensor x, Location at) {
  return {make_node(id(Op::silu), "silu", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
