// SPDX-License-Identifier: Apache-2.0
#include "ops/clamp/clamp.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor clamp(Tensor x, float least, float most, Location at) {
  return {make_node(id(Op::clamp), "clamp", {x}, {dense(DType::f32, x.shape())}, ClampAttr{least, most}, at), 0};
}

}  // namespace consonant
