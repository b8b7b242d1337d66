// SPDX-License-Identifier: Apache-2.0
#include "ops/rope/rope.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Tensor rope(Tensor x, Tensor pos, const Rotary& rotary, Location at) {
  if (x.shape().rank() != 3 || rotary.dims > x.shape().last() || x.shape()[0] != pos.shape()[0])
    shape_error("rope", fmt::format("x [token, head, dim >= {}] and pos [token]", rotary.dims), {x, pos}, at);
  Tensor angles = rope_angles(pos, rotary, at);
  return {make_node(id(Op::rope), "rope", {x, angles}, {dense(DType::f32, x.shape())},
                    RopeAttr{rotary.dims, rotary.neighbours}, at),
          0};
}

}  // namespace consonant
