// SPDX-License-Identifier: Apache-2.0
#include "ops/patches/patches.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Tensor patches(Tensor x, const PatchesAttr& a, Location at) {
  const Shape& s = x.shape();
  const bool sized = s.rank() == 3 && s.axis() == Axis::fixed;
  if (!sized || a.kernel < 1 || a.stride < 1 || !has_edges(a.edge, s[1], a.before, a.after) ||
      a.before + s[1] + a.after < a.kernel)
    shape_error("patches",
                fmt::format("x [group, time, n] of a fixed size, patches of {} rows, {} rows before and {} after{}",
                            a.kernel, a.before, a.after, a.edge == Edge::mirror ? " that it has to mirror" : ""),
                {x}, at);
  const int64_t frames = (a.before + s[1] + a.after - a.kernel) / a.stride + 1;
  return {make_node(id(Op::patches), "patches", {x}, {dense(DType::f32, {s[0] * frames, a.kernel * s[2]})}, a, at), 0};
}

}  // namespace consonant
