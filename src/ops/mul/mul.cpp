// SPDX-License-Identifier: Apache-2.0
#include "ops/mul/mul.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor mul(Tensor a, Tensor b, Location at) {
  const bool vector = b.shape().rank() == 1 && a.shape().rank() > 0 && b.shape()[0] == a.shape().last();
  if (!vector && a.shape() != b.shape()) shape_error("mul", "two equal shapes, or a vector for each row", {a, b}, at);
  return {make_node(id(Op::mul), "mul", {a, b}, {dense(DType::f32, a.shape())}, {}, at), 0};
}

}  // namespace consonant
