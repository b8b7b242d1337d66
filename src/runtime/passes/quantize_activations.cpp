// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/linear/linear.hpp"
#include "ops/op.hpp"
#include "ops/quantize/quantize.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

namespace {

// Weights of up to 4 bits leave their products room: sums of many fit 16 bits. That pays for activations in 16 bits, so
// that a model in 4 bits errs by its weights alone. With wider weights 8 bits keep prefill at twice the speed of
// float32.
DType activation_type(const Node& linear) {
  if (linear.inputs[0].shape().axis() == Axis::wanted) return DType::q16_x;
  switch (linear.inputs[1].type()) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q4_k:
    case DType::q2_k:
    case DType::q3_k:
    case DType::iq4_nl:
    case DType::iq4_xs:
    case DType::mxfp4:
      return DType::q16_x;
    default:
      return DType::q8_x;
  }
}

}  // namespace

std::vector<Tensor> quantize_activations(const std::vector<Tensor>& outputs) {
  return merge_equal(rewrite(outputs, [](const std::shared_ptr<Node>& node, const Node&) -> std::vector<Tensor> {
    if (!is(*node, Op::linear) || !is_quantized(node->inputs[1].type()) || node->inputs[0].type() != DType::f32)
      return {};
    const DType type = activation_type(*node);
    Tensor x = quantize(node->inputs[0], type, node->location);
    x.node->name = fmt::format("{}/quantize({})", node->inputs[0].name(), name(type));
    x.node->key = name(type);
    auto with_small_x = std::make_shared<Node>(*node);
    with_small_x->inputs[0] = x;
    return {{with_small_x, 0}};
  }));
}

}  // namespace consonant
