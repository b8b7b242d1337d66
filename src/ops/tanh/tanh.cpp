// SPDX-License-Identifier: Apache-2.0
#include "ops/tanh/tanh.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor tanh(Tensor x, Location at) {
  return {make_node(id(Op::tanh), "tanh", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
