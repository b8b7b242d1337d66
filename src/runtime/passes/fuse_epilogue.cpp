// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"
#include "ops/op.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

namespace {

// The epilogue input of a linear node, or an empty tensor.
Tensor bias_of(const Node& linear) { return linear.attr<LinearAttr>().bias ? linear.inputs[2] : Tensor{}; }

}  // namespace

std::vector<Tensor> fuse_epilogue(const std::vector<Tensor>& outputs) {
  const auto uses = count_uses(outputs);
  return rewrite(outputs, [&](const std::shared_ptr<Node>& node, const Node& original) -> std::vector<Tensor> {
    if (!is(*node, Op::add)) return {};
    // Addition of two floats doesn't depend on their order, so either side may be the product.
    for (size_t side : {size_t{1}, size_t{0}}) {
      const Node& inner = *node->inputs[side].node;
      const Tensor& other = node->inputs[1 - side];
      if (!is(inner, Op::linear) || inner.attr<LinearAttr>().residual) continue;
      if (uses.at(original.inputs[side].node.get()) != 1) continue;
      const bool is_bias = other.shape().rank() == 1;
      if (is_bias && (inner.attr<LinearAttr>().bias || side != 0)) continue;
      Tensor fused = linear_epilogue(inner.inputs[0], inner.inputs[1], is_bias ? other : bias_of(inner),
                                     is_bias ? Tensor{} : other, node->location);
      fused.node->name = node->name;
      fused.node->covers = inner.covers.empty() ? std::vector<std::string>{inner.name} : inner.covers;
      fused.node->covers.push_back(node->name);
      return {fused};
    }
    return {};
  });
}

}  // namespace consonant
