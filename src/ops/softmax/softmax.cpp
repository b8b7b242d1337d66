// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/softmax.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor softmax(Tensor x, Location at) {
  if (x.shape().rank() == 0) shape_error("softmax", "x [..., n]", {x}, at);
  return {make_node(id(Op::softmax), "softmax", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
