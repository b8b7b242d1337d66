// SPDX-License-Identifier: Apache-2.0
#include "ops/rms_norm/rms_norm.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor rms_norm(Tensor x, Tensor w, float epsilon, Location at) {
  if (w.shape().rank() != 1 || x.shape().rank() == 0 || w.shape()[0] != x.shape().last())
    shape_error("rms_norm", "x [..., n] and w [n]", {x, w}, at);
  return {make_node(id(Op::rms_norm), "rms_norm", {x, w}, {dense(DType::f32, x.shape())}, RmsNormAttr{epsilon}, at), 0};
}

}  // namespace consonant
