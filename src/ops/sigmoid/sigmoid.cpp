// SPDX-License-Identifier: Apache-2.0
#include "ops/sigmoid/sigmoid.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor sigmoid(Tensor x, Location at) {
  return {make_node(id(Op::sigmoid), "sigmoid", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
