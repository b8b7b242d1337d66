// SPDX-License-Identifier: Apache-2.0
#include "ops/log_floor/log_floor.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor log_floor(Tensor x, float least, Location at) {
  return {make_node(id(Op::log_floor), "log_floor", {x}, {dense(DType::f32, x.shape())}, LogFloorAttr{least}, at), 0};
}

}  // namespace consonant
