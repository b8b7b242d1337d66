// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum/cumsum.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor cumsum(Tensor x, Location at) {
  if (x.shape().rank() == 0) shape_error("cumsum", "x [..., n]", {x}, at);
  return {make_node(id(Op::cumsum), "cumsum", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
