// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"
#include "ops/linear_of/linear_of.hpp"
#include "ops/op.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

std::vector<Tensor> fuse_experts(const std::vector<Tensor>& outputs) {
  const auto uses = count_uses(outputs);
  return rewrite(outputs, [&](const std::shared_ptr<Node>& node, const Node& original) -> std::vector<Tensor> {
    if (!is(*node, Op::gated)) return {};
    const Node &gate = *node->inputs[0].node, &up = *node->inputs[1].node;
    const auto fits = [&](size_t side) {
      const Node& product = *node->inputs[side].node;
      return is(product, Op::linear_of) && !product.attr<LinearOfAttr>().gated &&
             product.inputs[1].type() == DType::f32 && uses.at(original.inputs[side].node.get()) == 1;
    };
    if (&gate == &up || !fits(0) || !fits(1)) return {};
    if (!(gate.inputs[0] == up.inputs[0]) || !(gate.inputs[1] == up.inputs[1])) return {};
    Tensor fused = linear_of_gated(node->attr<GatedAttr>().activation, gate.inputs[0], gate.inputs[1], gate.inputs[2],
                                   up.inputs[2], node->location);
    fused.node->name = node->name;
    fused.node->covers = {gate.name, up.name};
    const std::vector<std::string> last = node->covers.empty() ? std::vector{node->name} : node->covers;
    fused.node->covers.insert(fused.node->covers.end(), last.begin(), last.end());
    return {fused};
  });
}

}  // namespace consonant
