// SPDX-License-Identifier: Apache-2.0
#include "ops/depthwise/depthwise.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor depthwise(Tensor x, Tensor w, Tensor b, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || s.axis() != Axis::fixed || s[1] < 1 || w.shape().rank() != 1 || b.shape() != Shape{s[1]} ||
      w.shape()[0] < s[1] || w.shape()[0] % s[1] != 0 || w.shape()[0] / s[1] > s[0])
    shape_error("depthwise", "x [row, n] of a fixed size, w [kernel * n] of at most as many taps as rows, and b [n]",
                {x, w, b}, at);
  const int64_t kernel = w.shape()[0] / s[1];
  return {make_node(id(Op::depthwise), "depthwise", {x, w, b}, {dense(DType::f32, {s[0] - kernel + 1, s[1]})}, {}, at),
          0};
}

}  // namespace consonant
