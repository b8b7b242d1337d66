// SPDX-License-Identifier: Apache-2.0
#include "ops/carry/carry.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor carry(Tensor& state, Tensor x, Tensor pos, Tensor slot, Edge edge, Location at) {
  const Shape &s = state.shape(), &rows = x.shape();
  if (s.rank() != 3 || rows.rank() != 2 || rows.axis() != Axis::fixed || s[2] != rows[1] || rows[0] < 1 || s[1] < 1 ||
      edge == Edge::mirror)
    shape_error("carry", "state [slot, kept, n] and x [row, n] of a fixed size, edges of zeros or repeated", {state, x},
                at);
  if (state.type() != DType::f32) shape_error("carry", "a state of f32", {state}, at);
  const auto is_index = [](const Tensor& t) {
    return t.type() == DType::i32 && t.shape().rank() == 1 && t.shape()[0] > 0;
  };
  if (!is_index(pos) || !is_index(slot)) shape_error("carry", "pos [position] and slot [1] in i32", {pos, slot}, at);
  Output next = dense(DType::f32, s);
  next.alias = 0;
  auto node = make_node(id(Op::carry), "carry", {state, x, pos, slot},
                        {dense(DType::f32, {s[1] + rows[0], s[2]}), next}, CarryAttr{edge}, at);
  state = {node, 1};
  return {node, 0};
}

}  // namespace consonant
