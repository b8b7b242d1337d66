// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor pool(Tensor x, Location at) { return pool(std::move(x), Tensor{}, at); }

Tensor pool(Tensor x, Tensor scores, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || s.axis() != Axis::fixed || s[0] < 1 || (scores && scores.shape() != s))
    shape_error("pool", "x [row, n] of a fixed size, one row at least, and scores of the same", {x, scores}, at);
  std::vector<Tensor> inputs = {x};
  if (scores) inputs.push_back(scores);
  return {
      make_node(id(Op::pool), "pool", inputs, {dense(DType::f32, {2, s[1]})}, PoolAttr{static_cast<bool>(scores)}, at),
      0};
}

}  // namespace consonant
