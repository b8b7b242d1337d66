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
DType activation_type(const Tensor& x, const Tensor& w) {
  if (x.shape().axis() == Axis::wanted) return DType::q16_x;
  switch (w.type()) {
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
    if (!is(*node, Op::linear) && !is(*node, Op::linear_of)) return {};
    const size_t at = is(*node, Op::linear) ? 0 : 1;  // x, then w
    const Tensor &plain = node->inputs[at], &w = node->inputs[at + 1];
    if (!is_quantized(w.type()) || plain.type() != DType::f32) return {};
    const DType type = activation_type(plain, w);
    Tensor x = quantize(plain, type, node->location);
    x.node->name = fmt::format("{}/quantize({})", plain.name(), name(type));
    x.node->key = name(type);
    auto with_small_x = std::make_shared<Node>(*node);
    with_small_x->inputs[at] = x;
    return {{with_small_x, 0}};
  }));
}

}  // namespace consonant
