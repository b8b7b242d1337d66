// SPDX-License-Identifier: Apache-2.0
#include "ops/work.hpp"

#include <fmt/format.h>

namespace consonant {

namespace {

std::string refuse(const Output& value, std::string_view role, DType type = DType::f32) {
  if (value.type != type) return fmt::format("{} is {}, not {}", role, name(value.type), name(type));
  const int rank = value.shape.rank();
  if (rank > 0 && value.shape.last() > 1 && value.strides[static_cast<size_t>(rank - 1)] != 1)
    return fmt::format("the rows of {} aren't contiguous", role);
  return {};
}

}  // namespace

Refusal wants_float_rows(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& x = node.inputs[i];
    if (x.node->op == op_weight && x.shape().rank() == 1) continue;  // vectors are float32 on every device
    std::string reason = refuse(x.node->outputs[static_cast<size_t>(x.output)], fmt::format("input {}", i));
    if (!reason.empty()) return {reason};
  }
  for (const Output& out : node.outputs) {
    std::string reason = refuse(out, "the output");
    if (!reason.empty()) return {reason};
  }
  return {};
}

Refusal wants_rows_of(const Node& node, std::initializer_list<DType> inputs, std::initializer_list<DType> outputs) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& x = node.inputs[i];
    const Output& value = x.node->outputs[static_cast<size_t>(x.output)];
    std::string reason = refuse(value, fmt::format("input {}", i), inputs.begin()[i]);
    if (!reason.empty()) return {reason};
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    std::string reason = refuse(node.outputs[i], fmt::format("output {}", i), outputs.begin()[i]);
    if (!reason.empty()) return {reason};
  }
  return {};
}

Refusal wants_matrix(const Tensor& w, std::string_view role) {
  const DType type = w.type();
  const bool activations = type == DType::q8_x || type == DType::q16_x;
  if (activations || !(type == DType::f32 || type == DType::f16 || type == DType::bf16 || is_quantized(type)))
    return {fmt::format("{} is {}", role, name(type))};
  if (w.node->op == op_view && w.node->inputs[0].node->op == op_weight)
    return {fmt::format("{} is part of a weight", role)};
  return {};
}

}  // namespace consonant
