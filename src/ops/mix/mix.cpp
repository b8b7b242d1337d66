// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor mix(Tensor x, Tensor weights, Tensor residual, Location at) {
  const Shape &s = x.shape(), &w = weights.shape();
  if (s.rank() != 3 || w.rank() != 2 || w.axis() != s.axis() || w[0] != s[0] || w[1] != s[1])
    shape_error("mix", "x [token, used, n] and weights [token, used]", {x, weights}, at);
  const Shape out({s[0], s[2]}, s.axis());
  std::vector<Tensor> inputs = {x, weights};
  if (residual.node) {
    if (!(residual.shape() == out)) shape_error("mix", "the residual [token, n]", {x, weights, residual}, at);
    inputs.push_back(residual);
  }
  return {make_node(id(Op::mix), "mix", inputs, {dense(DType::f32, out)}, {}, at), 0};
}

}  // namespace consonant
