// SPDX-License-Identifier: Apache-2.0
#include "ops/argsort/argsort.hpp"

#include <limits>

#include "ops/op.hpp"

namespace consonant {

Tensor argsort(Tensor x, Order order, Location at) {
  if (x.shape().rank() == 0 || x.shape().last() > std::numeric_limits<int32_t>::max() || x.type() != DType::f32)
    shape_error("argsort", "x [..., n] f32, n below 2^31", {x}, at);
  return {make_node(id(Op::argsort), "argsort", {x}, {dense(DType::i32, x.shape())}, ArgsortAttr{order}, at), 0};
}

}  // namespace consonant
