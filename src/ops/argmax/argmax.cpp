// SPDX-License-Identifier: Apache-2.0
#include "ops/argmax/argmax.hpp"

#include <limits>

#include "ops/op.hpp"

namespace consonant {

Tensor argmax(Tensor x, Location at) {
  const Shape& shape = x.shape();
  if (shape.rank() < 2 || shape.last() < 1 || shape.last() > std::numeric_limits<int32_t>::max() ||
      x.type() != DType::f32)
    shape_error("argmax", "x [..., row, n] f32, n from 1 to below 2^31", {x}, at);
  int64_t sizes[Shape::max_rank];
  for (int i = 0; i < shape.rank() - 1; ++i) sizes[i] = shape[i];
  const Shape rows = make_shape(sizes, shape.rank() - 1, shape.axis());
  return {make_node(id(Op::argmax), "argmax", {x}, {dense(DType::i32, rows)}, {}, at), 0};
}

}  // namespace consonant
