// SPDX-License-Identifier: Apache-2.0
#include "ops/causal_conv/causal_conv.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor causal_conv(Tensor& state, Tensor x, Tensor w, Tensor b, const Slots& slots, Location at) {
  const Shape& s = state.shape();
  if (s.rank() != 3 || x.shape().rank() != 2 || s[2] != x.shape()[1] || s[1] < 1 ||
      w.shape() != Shape{s[2] * (s[1] + 1)} || b.shape() != Shape{s[2]})
    shape_error("causal_conv",
                "state [slot, kernel - 1, channel], x [token, channel], w [channel * kernel] and b [channel]",
                {state, x, w, b}, at);
  if (state.type() != DType::f32) shape_error("causal_conv", "a state of f32", {state}, at);
  check_slots("causal_conv", slots, x, at);
  Output next = dense(DType::f32, s);
  next.alias = 0;
  auto node = make_node(id(Op::causal_conv), "causal_conv", {state, x, w, b, slots.pos, slots.seq, slots.slots},
                        {dense(DType::f32, x.shape()), next}, CausalConvAttr{s[1] + 1}, at);
  state = {node, 1};
  return {node, 0};
}

}  // namespace consonant
