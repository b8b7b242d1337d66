// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/rewrite.hpp"

namespace consonant {

std::unordered_map<const Node*, int> count_uses(const std::vector<Tensor>& outputs) {
  std::unordered_map<const Node*, int> uses;
  for (const Node* node : walk(outputs))
    for (const Tensor& in : node->inputs) ++uses[in.node.get()];
  for (const Tensor& out : outputs) ++uses[out.node.get()];
  return uses;
}

std::vector<Tensor> rewrite(const std::vector<Tensor>& outputs, const Rule& rule) {
  return rewrite_with_stand_ins(outputs, [&](const std::shared_ptr<Node>& node, const Node& original, const StandIn&) {
    return rule(node, original);
  });
}

std::vector<Tensor> rewrite_with_stand_ins(const std::vector<Tensor>& outputs, const RuleWithStandIns& rule) {
  std::unordered_map<const Node*, std::vector<Tensor>> now;  // what stands for each output of an original node
  std::unordered_map<const Node*, std::shared_ptr<Node>> owner;
  for (const Node* node : walk(outputs))
    for (const Tensor& in : node->inputs) owner.emplace(in.node.get(), in.node);
  for (const Tensor& out : outputs) owner.emplace(out.node.get(), out.node);

  const auto stand_in = [&](const Tensor& x) { return now.at(x.node.get())[static_cast<size_t>(x.output)]; };
  const StandIn found = [&](const Tensor& x) { return now.count(x.node.get()) ? stand_in(x) : Tensor{}; };
  for (const Node* original : walk(outputs)) {
    std::shared_ptr<Node> node = owner.at(original);
    bool changed = false;
    for (const Tensor& in : original->inputs) changed |= stand_in(in) != in;
    if (changed) {
      node = std::make_shared<Node>(*original);
      for (Tensor& in : node->inputs) in = stand_in(in);
    }
    std::vector<Tensor> result = rule(node, *original, found);
    if (result.empty())
      for (size_t i = 0; i < node->outputs.size(); ++i) result.push_back({node, static_cast<int>(i)});
    now.emplace(original, std::move(result));
  }
  std::vector<Tensor> rewritten;
  for (const Tensor& out : outputs) rewritten.push_back(stand_in(out));
  return rewritten;
}

}  // namespace consonant
