// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"
#include "ops/mix/mix.hpp"
#include "ops/op.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

namespace {

// The epilogue input of a linear node, or an empty tensor.
Tensor bias_of(const Node& linear) { return linear.attr<LinearAttr>().bias ? linear.inputs[2] : Tensor{}; }

// A node that adds `other` to what `inner` makes, or an empty tensor. A bias comes second.
Tensor with_added(const Node& inner, const Tensor& other, bool second, Location at) {
  const bool is_bias = other.shape().rank() == 1;
  if (is(inner, Op::mix) && inner.inputs.size() == 2 && !is_bias && other.type() == DType::f32)
    return mix(inner.inputs[0], inner.inputs[1], other, at);
  if (!is(inner, Op::linear) || inner.attr<LinearAttr>().residual) return {};
  if (is_bias && (inner.attr<LinearAttr>().bias || !second)) return {};
  return linear_epilogue(inner.inputs[0], inner.inputs[1], is_bias ? other : bias_of(inner), is_bias ? Tensor{} : other,
                         at);
}

}  // namespace

std::vector<Tensor> fuse_epilogue(const std::vector<Tensor>& outputs) {
  const auto uses = count_uses(outputs);
  return rewrite(outputs, [&](const std::shared_ptr<Node>& node, const Node& original) -> std::vector<Tensor> {
    if (!is(*node, Op::add)) return {};
    // Addition of two floats doesn't depend on their order, so either side may be the product.
    for (size_t side : {size_t{1}, size_t{0}}) {
      const Node& inner = *node->inputs[side].node;
      if (uses.at(original.inputs[side].node.get()) != 1) continue;
      Tensor fused = with_added(inner, node->inputs[1 - side], side == 0, node->location);
      if (!fused.node) continue;
      fused.node->name = node->name;
      fused.node->covers = inner.covers.empty() ? std::vector<std::string>{inner.name} : inner.covers;
      fused.node->covers.push_back(node->name);
      return {fused};
    }
    return {};
  });
}

}  // namespace consonant
