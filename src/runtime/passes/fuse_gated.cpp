// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"
#include "ops/op.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

std::vector<Tensor> fuse_gated(const std::vector<Tensor>& outputs) {
  const auto uses = count_uses(outputs);
  return rewrite(outputs, [&](const std::shared_ptr<Node>& node, const Node& original) -> std::vector<Tensor> {
    if (!is(*node, Op::mul) || node->inputs[0].shape() != node->inputs[1].shape()) return {};
    for (size_t side = 0; side < 2; ++side) {
      const Node& inner = *node->inputs[side].node;
      const bool silu = is(inner, Op::silu), gelu = is(inner, Op::gelu);
      if ((!silu && !gelu) || uses.at(original.inputs[side].node.get()) != 1) continue;
      Tensor fused =
          gated(silu ? Activation::silu : Activation::gelu, inner.inputs[0], node->inputs[1 - side], node->location);
      fused.node->name = node->name;
      fused.node->covers = {inner.name, node->name};
      return {fused};
    }
    return {};
  });
}

}  // namespace consonant
