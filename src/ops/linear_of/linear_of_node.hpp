// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "ops/linear_of/linear_of.hpp"
#include "ops/work.hpp"

namespace consonant {

// What the kernels of linear_of refuse alike.
inline Refusal wants_experts(const Node& node) {
  const Tensor &x = node.inputs[1], &w = node.inputs[2];
  const auto last_stride = [](const Tensor& t) {
    return t.node->outputs[static_cast<size_t>(t.output)].strides[static_cast<size_t>(t.shape().rank() - 1)];
  };
  for (size_t i = 2; i < node.inputs.size(); ++i) {
    if (Refusal refusal = wants_matrix(node.inputs[i], i == 2 ? "w" : "up")) return refusal;
    if (node.inputs[i].node->op == op_view) return {"a weight is a view"};
  }
  if (x.type() != DType::f32 && x.type() != DType::q8_x && x.type() != DType::q16_x)
    return {fmt::format("x is {}", name(x.type()))};
  if (x.type() != DType::f32 && !is_quantized(w.type()))
    return {fmt::format("x in {} times w in {}", name(x.type()), name(w.type()))};
  if (x.shape().last() > 1 && last_stride(x) != 1) return {"the rows of x aren't contiguous"};
  if (node.inputs[0].shape().last() > 1 && last_stride(node.inputs[0]) != 1)
    return {"the rows of ids aren't contiguous"};
  return {};
}

}  // namespace consonant
