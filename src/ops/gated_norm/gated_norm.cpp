// SPDX-License-Identifier: Apache-2.0
#include "ops/gated_norm/gated_norm.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor gated_norm(Tensor x, Tensor z, Tensor w, int64_t groups, float epsilon, Location at) {
  if (x.shape().rank() == 0 || x.shape() != z.shape() || w.shape() != Shape{x.shape().last()} || groups < 1 ||
      x.shape().last() % groups != 0)
    shape_error("gated_norm", "x and z [..., n] and w [n], n a multiple of the groups", {x, z, w}, at);
  return {make_node(id(Op::gated_norm), "gated_norm", {x, z, w}, {dense(DType::f32, x.shape())},
                    GatedNormAttr{groups, epsilon}, at),
          0};
}

}  // namespace consonant
