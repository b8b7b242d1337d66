// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Tensor conv(Tensor x, Tensor w, Tensor b, const ConvAttr& attr, Tensor residual, Location at) {
  const Shape &s = x.shape(), &weights = w.shape();
  const bool sized = s.rank() == 2 && s.axis() == Axis::fixed && weights.rank() == 2 && attr.kernel >= 1 &&
                     attr.stride >= 1 && attr.dilation >= 1 && weights[1] == attr.kernel * s[1];
  const int64_t reach = sized ? attr.dilation * (attr.kernel - 1) + 1 : 0;
  if (!sized || s[0] < reach)
    shape_error("conv",
                fmt::format("x [row, n] of a fixed size and w [outputs, {} n], at least as many rows as {} taps {} "
                            "apart reach over",
                            attr.kernel, attr.kernel, attr.dilation),
                {x, w}, at);
  const Shape out = {(s[0] - reach) / attr.stride + 1, weights[0]};
  std::vector<Tensor> inputs = {x, w};
  if (b) {
    if (b.shape() != Shape{weights[0]}) shape_error("conv", "b [outputs]", {w, b}, at);
    inputs.push_back(b);
  }
  if (residual) {
    if (residual.shape() != out) shape_error("conv", "residual " + to_string(out), {x, w, residual}, at);
    inputs.push_back(residual);
  }
  const ConvAttr full = {attr.kernel, attr.stride, attr.dilation, static_cast<bool>(b), static_cast<bool>(residual)};
  return {make_node(id(Op::conv), "conv", std::move(inputs), {dense(DType::f32, out)}, full, at), 0};
}

}  // namespace consonant
