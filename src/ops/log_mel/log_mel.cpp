// SPDX-License-Identifier: Apache-2.0
#include "ops/log_mel/log_mel.hpp"

#include "ops/op.hpp"

namespace consonant {

std::pair<Tensor, Tensor> log_mel(Tensor x, Tensor peak, Location at) {
  if (x.shape().rank() != 2 || x.shape().axis() != Axis::fixed || peak.shape() != Shape{1})
    shape_error("log_mel", "x [frame, mel] of a fixed size and peak [1]", {x, peak}, at);
  auto node =
      make_node(id(Op::log_mel), "log_mel", {x, peak}, {dense(DType::f32, x.shape()), dense(DType::f32, {1})}, {}, at);
  return {{node, 0}, {node, 1}};
}

}  // namespace consonant
