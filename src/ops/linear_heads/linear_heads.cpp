// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_heads/linear_heads.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor linear_heads(Tensor x, Tensor w, Location at) {
  const Shape &s = x.shape(), &ws = w.shape();
  if (s.rank() != 3 || ws.rank() != 3 || ws[0] != s[1] || ws[2] != s[2])
    shape_error("linear_heads", "x [token, head, inputs] and w [head, outputs, inputs]", {x, w}, at);
  return {make_node(id(Op::linear_heads), "linear_heads", {x, w}, {dense(DType::f32, s.with_last(ws[1]))}, {}, at), 0};
}

}  // namespace consonant
