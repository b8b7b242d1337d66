// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_angles/rope_angles.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Tensor rope_angles(Tensor pos, const Rotary& rotary, Location at) {
  if (pos.shape().rank() != 1 || pos.type() != DType::i32 || rotary.dims < 2 || rotary.dims % 2 != 0)
    shape_error("rope_angles", fmt::format("pos [token] i32 and an even number of dims, not {}", rotary.dims), {pos},
                at);
  std::vector<Tensor> inputs = {pos};
  if (rotary.divisors) {
    if (rotary.divisors.shape() != Shape{rotary.dims / 2})
      shape_error("rope_angles", fmt::format("divisors [{}]", rotary.dims / 2), {pos, rotary.divisors}, at);
    inputs.push_back(rotary.divisors);
  }
  const int64_t sizes[] = {pos.shape()[0], rotary.dims};
  auto node = make_node(id(Op::rope_angles), "rope_angles", std::move(inputs),
                        {dense(DType::f32, make_shape(sizes, 2, pos.shape().axis()))}, rotary, at);
  const Yarn& y = rotary.yarn;
  node->key = fmt::format("{} {} {} {} {} {} {} {}", rotary.dims, rotary.base, rotary.scale, y.factor, y.context,
                          y.fast, y.slow, rotary.magnitude);
  return {node, 0};
}

}  // namespace consonant
