// SPDX-License-Identifier: Apache-2.0
#include "ops/snake/snake.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor snake(Tensor x, Tensor a, Tensor b, Location at) {
  const Shape channels = {x.shape().last()};
  if (x.shape().rank() < 1 || a.shape() != channels || b.shape() != channels)
    shape_error("snake", "x [..., n], a [n] and b [n]", {x, a, b}, at);
  return {make_node(id(Op::snake), "snake", {x, a, b}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
