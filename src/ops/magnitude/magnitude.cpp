// SPDX-License-Identifier: Apache-2.0
#include "ops/magnitude/magnitude.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor magnitude(Tensor x, Location at) {
  const Shape& s = x.shape();
  if (s.rank() == 0 || s.last() % 2 != 0) shape_error("magnitude", "x [..., 2 n]", {x}, at);
  return {make_node(id(Op::magnitude), "magnitude", {x}, {dense(DType::f32, s.with_last(s.last() / 2))}, {}, at), 0};
}

}  // namespace consonant
