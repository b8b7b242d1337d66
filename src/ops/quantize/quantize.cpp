// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/quantize.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor quantize(Tensor x, DType type, Location at) {
  if ((x.shape().rank() != 2 && x.shape().rank() != 3) || x.shape().last() % 32 != 0 || x.type() != DType::f32 ||
      (type != DType::q8_x && type != DType::q16_x))
    shape_error("quantize", "x [token, n] or [token, head, n] in f32, n a multiple of 32, to q8_x or q16_x", {x}, at);
  return {make_node(id(Op::quantize), "quantize", {x}, {dense(type, x.shape())}, {}, at), 0};
}

}  // namespace consonant
