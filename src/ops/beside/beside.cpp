// SPDX-License-Identifier: Apache-2.0
#include "ops/beside/beside.hpp"

#include <algorithm>

#include "ops/op.hpp"

namespace consonant {

Tensor beside(const std::vector<Tensor>& parts, Location at) {
  int64_t rows = 1, n = 0;
  bool fit = !parts.empty();
  for (const Tensor& part : parts) {
    const Shape& s = part.shape();
    fit = fit && s.rank() == 2 && s.axis() == Axis::fixed;
    if (!fit) break;
    rows = std::max(rows, s[0]);
    n += s[1];
  }
  for (const Tensor& part : parts) fit = fit && (part.shape()[0] == rows || part.shape()[0] == 1);
  if (!fit) shape_error("beside", "parts [row, n] of a fixed size, with as many rows or one", parts, at);
  return {make_node(id(Op::beside), "beside", parts, {dense(DType::f32, {rows, n})}, {}, at), 0};
}

}  // namespace consonant
