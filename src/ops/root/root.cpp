// SPDX-License-Identifier: Apache-2.0
#include "ops/root/root.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor root(Tensor x, float plus, Location at) {
  return {make_node(id(Op::root), "root", {x}, {dense(DType::f32, x.shape())}, RootAttr{plus}, at), 0};
}

}  // namespace consonant
