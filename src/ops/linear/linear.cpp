// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor linear(Tensor x, Tensor w, Location at) { return linear_epilogue(x, w, {}, {}, at); }

Tensor linear_epilogue(Tensor x, Tensor w, Tensor bias, Tensor residual, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || w.shape().rank() != 2 || s[1] != w.shape()[1])
    shape_error("linear", "x [token, inputs] and w [outputs, inputs]", {x, w}, at);
  const Shape out = s.with_last(w.shape()[0]);
  std::vector<Tensor> inputs = {x, w};
  if (bias) {
    if (bias.shape().rank() != 1 || bias.shape()[0] != out[1]) shape_error("linear", "bias [outputs]", {w, bias}, at);
    inputs.push_back(bias);
  }
  if (residual) {
    if (residual.shape() != out) shape_error("linear", "residual [token, outputs]", {x, w, residual}, at);
    inputs.push_back(residual);
  }
  return {make_node(id(Op::linear), "linear", std::move(inputs), {dense(DType::f32, out)},
                    LinearAttr{static_cast<bool>(bias), static_cast<bool>(residual)}, at),
          0};
}

}  // namespace consonant
