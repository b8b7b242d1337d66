// SPDX-License-Identifier: Apache-2.0
#include "ops/top_k/top_k.hpp"

#include <fmt/format.h>

#include <limits>

#include "ops/op.hpp"

namespace consonant {

std::pair<Tensor, Tensor> top_k(Tensor x, int64_t k, Location at) {
  const int64_t n = x.shape().last();
  if (x.shape().rank() == 0 || n > std::numeric_limits<int32_t>::max() || x.type() != DType::f32 || k < 1 || k > n)
    shape_error("top_k", fmt::format("x [..., n] f32, n below 2^31 and at least {}", k), {x}, at);
  const Shape shape = x.shape().with_last(k);
  auto node =
      make_node(id(Op::top_k), "top_k", {x}, {dense(DType::f32, shape), dense(DType::i32, shape)}, TopKAttr{k}, at);
  return {{node, 0}, {node, 1}};
}

}  // namespace consonant
