// SPDX-License-Identifier: Apache-2.0
#include "ops/elu/elu.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor elu(Tensor x, Location at) {
  return {make_node(id(Op::elu), "elu", {x}, {dense(DType::f32, x.shape())}, {}, at), 0};
}

}  // namespace consonant
