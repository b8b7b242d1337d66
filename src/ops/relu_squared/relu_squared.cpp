// SPDX-License-Identifier: Apache-2.0
#include "ops/relu_squared/relu_squared.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor relu_squared(Tensor x, Location at) {
  return {make_node(id(Op::relu_squared), "relu_squared", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
