// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm/lstm.hpp"

#include "ops/op.hpp"

namespace consonant {

std::pair<Tensor, Tensor> lstm(Tensor x, Tensor w, Tensor b, Tensor state, Location at) {
  const int64_t n = w.shape().last();
  const Shape &s = x.shape(), gates = {4 * n};
  if (s.rank() != 2 || s.axis() != Axis::fixed || w.shape() != Shape{4 * n, n} || s[1] != 4 * n || b.shape() != gates ||
      state.shape() != Shape{2, n})
    shape_error("lstm", "x [time, 4 n] of a fixed size, w [4 n, n], b [4 n] and state [2, n]", {x, w, b, state}, at);
  auto node = make_node(id(Op::lstm), "lstm", {x, w, b, state},
                        {dense(DType::f32, {s[0], n}), dense(DType::f32, {2, n})}, {}, at);
  return {{node, 0}, {node, 1}};
}

}  // namespace consonant
