// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set.hpp"

#include <map>

#include "ops/gated/gated.hpp"
#include "ops/linear/linear.hpp"
#include "ops/op.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

namespace {

bool is_plain_linear(const Node& node) {
  return is(node, Op::linear) && !node.attr<LinearAttr>().residual && node.inputs[0].type() == DType::f32;
}

class LinearSets {
 public:
  explicit LinearSets(const std::vector<Tensor>& outputs) : uses_(count_uses(outputs)) {
    const std::vector<Node*> nodes = walk(outputs);
    for (const Node* node : nodes)
      if (is_gated_pair(*node))
        for (const Tensor& in : node->inputs) in_pair_.insert({in.node.get(), true});
    for (const Node* node : nodes)
      if (is_plain_linear(*node) && !in_pair_.count(node)) {
        std::vector<std::vector<const Node*>>& sets = sets_[{node->inputs[0].node.get(), node->inputs[0].output}];
        if (sets.empty() || sets.back().size() == LinearSetAttr::most) sets.emplace_back();
        sets.back().push_back(node);
      }
    for (const auto& entry : sets_)
      for (size_t i = 0; i < entry.second.size(); ++i)
        for (const Node* member : entry.second[i]) set_of_[member] = &entry.second[i];
  }

  std::vector<Tensor> operator()(const std::shared_ptr<Node>& node, const Node& original) {
    if (is_gated_pair(original)) return pair(*node, original);
    const auto found = set_of_.find(&original);
    if (found == set_of_.end()) return {};
    const std::vector<const Node*>& set = *found->second;
    std::vector<Tensor>& made = made_[&set];
    if (made.empty()) made = join(*node, set);
    if (made.empty()) return {};
    for (size_t i = 0; i < set.size(); ++i)
      if (set[i] == &original) return {made[i]};
    return {};
  }

 private:
  bool used_once(const Tensor& x) const { return uses_.at(x.node.get()) == 1; }

  bool is_gated_pair(const Node& node) const {
    if (!is(node, Op::gated)) return false;
    const Activation f = node.attr<GatedAttr>().activation;
    if (f != Activation::silu && f != Activation::gelu) return false;
    const Node &a = *node.inputs[0].node, &b = *node.inputs[1].node;
    return &a != &b && is_plain_linear(a) && is_plain_linear(b) && !a.attr<LinearAttr>().bias &&
           !b.attr<LinearAttr>().bias && a.inputs[0] == b.inputs[0] && used_once(node.inputs[0]) &&
           used_once(node.inputs[1]);
  }

  // The norm before a set, if nothing but the set's `members` reads what it makes: then the set reads its input.
  // `x` is the set's input, `original` the same before it was rewritten.
  void take_norm(LinearSet& set, std::vector<std::string>& covers, const Tensor& x, const Tensor& original,
                 size_t members) const {
    set.x = x;
    const Node& norm = *x.node;
    if (!is(norm, Op::rms_norm) || x.shape().rank() != 2) return;
    if (uses_.at(original.node.get()) != static_cast<int>(members)) return;
    set.x = norm.inputs[0], set.norm = norm.inputs[1], set.epsilon = norm.attr<RmsNormAttr>().epsilon;
    covers.push_back(norm.name);
  }

  static void add_covered(std::vector<std::string>& covers, const Node& node) {
    if (node.covers.empty()) return;
    covers.insert(covers.end(), node.covers.begin(), node.covers.end() - 1);
  }

  std::vector<Tensor> join(const Node& node, const std::vector<const Node*>& members) const {
    LinearSet set;
    std::vector<std::string> covers;
    take_norm(set, covers, node.inputs[0], members[0]->inputs[0], members.size());
    if (members.size() == 1 && !set.norm) return {};
    for (const Node* member : members) add_covered(covers, *member);
    for (const Node* member : members) {
      set.weights.push_back(member->inputs[1]);
      set.biases.push_back(member->attr<LinearAttr>().bias ? member->inputs[2] : Tensor{});
      covers.push_back(member->name);
    }
    std::vector<Tensor> made = linear_set(set, node.location);
    made[0].node->name = node.name;
    made[0].node->covers = std::move(covers);
    return made;
  }

  std::vector<Tensor> pair(const Node& node, const Node& original) const {
    LinearSet set;
    std::vector<std::string> covers;
    const Node &gate = *node.inputs[0].node, &up = *node.inputs[1].node;
    take_norm(set, covers, gate.inputs[0], original.inputs[0].node->inputs[0], 2);
    set.weights = {gate.inputs[1], up.inputs[1]};
    covers.push_back(gate.name), covers.push_back(up.name);
    add_covered(covers, node);
    covers.push_back(node.name);
    Tensor made = linear_gated(set, node.attr<GatedAttr>().activation, node.location);
    made.node->name = node.name;
    made.node->covers = std::move(covers);
    return {made};
  }

  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, bool> in_pair_;
  std::map<std::pair<const Node*, int>, std::vector<std::vector<const Node*>>> sets_;  // by what they read
  std::unordered_map<const Node*, const std::vector<const Node*>*> set_of_;
  std::unordered_map<const std::vector<const Node*>*, std::vector<Tensor>> made_;
};

}  // namespace

std::vector<Tensor> fuse_linear_sets(const std::vector<Tensor>& outputs) {
  LinearSets sets(outputs);
  return rewrite(outputs,
                 [&](const std::shared_ptr<Node>& node, const Node& original) { return sets(node, original); });
}

}  // namespace consonant
