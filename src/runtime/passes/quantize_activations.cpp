// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"
#include "ops/op.hpp"
#include "ops/quantize/quantize.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

std::vector<Tensor> quantize_activations(const std::vector<Tensor>& outputs) {
  return merge_equal(rewrite(outputs, [](const std::shared_ptr<Node>& node, const Node&) -> std::vector<Tensor> {
    if (!is(*node, Op::linear) || !is_quantized(node->inputs[1].type()) || node->inputs[0].type() != DType::f32)
      return {};
    Tensor x = quantize(node->inputs[0], node->location);
    x.node->name = node->inputs[0].name() + "/quantize";
    x.node->key = "q8_x";
    auto with_small_x = std::make_shared<Node>(*node);
    with_small_x->inputs[0] = x;
    return {{with_small_x, 0}};
  }));
}

}  // namespace consonant
