// SPDX-License-Identifier: Apache-2.0
#include "ops/ssm_scan/ssm_scan.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Tensor ssm_scan(Tensor& state, const SsmInputs& in, const Slots& slots, Location at) {
  const Shape &s = state.shape(), &x = in.x.shape(), &b = in.b.shape();
  const auto per_head = [&](const Tensor& t) { return t.shape() == Shape{x[1]}; };
  const bool ranks = s.rank() == 4 && x.rank() == 3 && b.rank() == 3;
  if (!ranks || s[1] != x[1] || s[3] != x[2] || b != in.c.shape() || b[0] != x[0] || b.axis() != x.axis() ||
      b[2] != s[2] || b[1] < 1 || x[1] % b[1] != 0 || in.dt.shape() != Shape({x[0], x[1]}, x.axis()) ||
      !per_head(in.dt_bias) || !per_head(in.a) || !per_head(in.d))
    shape_error(
        "ssm_scan",
        "state [slot, head, state, dim], x [token, head, dim], dt [token, head], b and c [token, group, state], "
        "heads a multiple of the groups, and dt_bias, a and d [head]",
        {state, in.x, in.dt, in.b, in.c, in.dt_bias, in.a, in.d}, at);
  if (s[2] < 1 || s[2] > most_states) shape_error("ssm_scan", fmt::format("1 to {} states", most_states), {state}, at);
  if (state.type() != DType::f32) shape_error("ssm_scan", "a state of f32", {state}, at);
  check_slots("ssm_scan", slots, in.x, at);
  Output next = dense(DType::f32, s);
  next.alias = 0;
  auto node = make_node(id(Op::ssm_scan), "ssm_scan",
                        {state, in.x, in.dt, in.b, in.c, in.dt_bias, in.a, in.d, slots.pos, slots.seq, slots.slots},
                        {dense(DType::f32, x), next}, {}, at);
  state = {node, 1};
  return {node, 0};
}

}  // namespace consonant
