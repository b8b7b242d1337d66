// SPDX-License-Identifier: Apache-2.0
#include "ops/pad_rows/pad_rows.hpp"

#include <fmt/format.h>

#include "ops/linear/linear.hpp"
#include "ops/op.hpp"

namespace consonant {

Tensor pad_rows(Tensor x, int64_t before, int64_t after, Location at) {
  return pad_rows(std::move(x), before, after, Edge::zeros, at);
}

Tensor pad_rows(Tensor x, int64_t before, int64_t after, Edge edge, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || s.axis() != Axis::fixed || !has_edges(edge, s[0], before, after))
    shape_error("pad_rows",
                fmt::format("x [row, n] of a fixed size, {} rows before and {} after{}", before, after,
                            edge == Edge::zeros ? "" : " that it has to fill"),
                {x}, at);
  return {make_node(id(Op::pad_rows), "pad_rows", {x}, {dense(DType::f32, {before + s[0] + after, s[1]})},
                    PadRowsAttr{before, after, edge}, at),
          0};
}

Tensor conv1d(Tensor x, Tensor w, int64_t kernel, int64_t stride, int64_t padding, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || kernel < 1 || stride < 1 || padding < 0 || s[0] + 2 * padding < kernel ||
      w.shape().rank() != 2 || w.shape()[1] != kernel * s[1])
    shape_error("conv1d", fmt::format("x [time, channels] and w [outputs, {} * channels]", kernel), {x, w}, at);
  Tensor padded = padding > 0 ? pad_rows(x, padding, padding, at) : x;
  return linear(unfold(padded, kernel, stride, at), w, at);
}

}  // namespace consonant
