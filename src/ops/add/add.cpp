// SPDX-License-Identifier: Apache-2.0
#include "ops/add/add.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor add(Tensor a, Tensor b, Location at) {
  const bool vector = b.shape().rank() == 1 && a.shape().rank() > 0 && b.shape()[0] == a.shape().last();
  if (!vector && a.shape() != b.shape()) shape_error("add", "two equal shapes, or a vector for each row", {a, b}, at);
  return {make_node(id(Op::add), "add", {a, b}, {dense(DType::f32, a.shape())}, {}, at), 0};
}

}  // namespace consonant
