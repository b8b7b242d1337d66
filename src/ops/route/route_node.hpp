// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "ops/route/route.hpp"
#include "ops/work.hpp"

namespace consonant {

// What the kernels of route refuse alike.
inline Refusal wants_router(const Node& node) {
  const Tensor& x = node.inputs[0];
  if (x.shape().last() > 1 && x.node->outputs[static_cast<size_t>(x.output)].strides[1] != 1)
    return {"the rows of the logits aren't contiguous"};
  if (node.inputs.size() == 1) return {};
  const Tensor& bias = node.inputs[1];  // vectors are float32 on every device
  if (bias.node->op != op_weight && bias.type() != DType::f32)
    return {fmt::format("the bias is {}, not f32", name(bias.type()))};
  return {};
}

// Whether experts are chosen by their scores. Else it is by their logits: a score is as monotone, in coarser steps.
inline bool chooses_by_score(const RouteAttr& attr, bool has_bias) {
  return has_bias || (attr.scoring == Scoring::sigmoid && attr.groups_used < attr.groups);
}

}  // namespace consonant
