// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/layer_norm.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor layer_norm(Tensor x, Tensor w, Tensor b, float epsilon, Location at) {
  if (w.shape().rank() != 1 || b.shape() != w.shape() || x.shape().rank() == 0 || w.shape()[0] != x.shape().last())
    shape_error("layer_norm", "x [..., n], w [n] and b [n]", {x, w, b}, at);
  return {make_node(id(Op::layer_norm), "layer_norm", {x, w, b}, {dense(DType::f32, x.shape())}, LayerNormAttr{epsilon},
                    at),
          0};
}

}  // namespace consonant
