// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/scale.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor scale(Tensor x, float factor, Location at) {
  return {make_node(id(Op::scale), "scale", {x}, {dense(DType::f32, x.shape())}, ScaleAttr{factor}, at), 0};
}

}  // namespace consonant
