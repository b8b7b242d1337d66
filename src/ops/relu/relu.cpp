// SPDX-License-Identifier: Apache-2.0
#include "ops/relu/relu.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor relu(Tensor x, Location at) {
  return {make_node(id(Op::relu), "relu", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
