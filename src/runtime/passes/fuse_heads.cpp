// SPDX-License-Identifier: Apache-2.0
#include "ops/attend/attend.hpp"
#include "ops/kv_append/kv_append.hpp"
#include "ops/op.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/rope/rope.hpp"
#include "ops/rope_append/rope_append.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

namespace {

// A rotation as the model wrote it, and the norm before it where nobody else uses that.
struct TurnedHeads {
  const Node* rope;
  const Node* norm = nullptr;

  TurnedHeads(const Node& rope, const std::unordered_map<const Node*, int>& uses) : rope(&rope) {
    const Node& before = *rope.inputs[0].node;
    if (is(before, Op::rms_norm) && uses.at(&before) == 1) norm = &before;
  }
  Tensor from() const { return (norm ? norm : rope)->inputs[0]; }
  Tensor weight() const { return norm ? norm->inputs[1] : Tensor{}; }
  float epsilon() const { return norm->attr<RmsNormAttr>().epsilon; }
};

// Whether the two can turn together.
bool agree(const Node& q, const Node& k) {
  const auto &a = q.attr<RopeAttr>(), &b = k.attr<RopeAttr>();
  return q.inputs[1] == k.inputs[1] && a.dims == b.dims && a.neighbours == b.neighbours &&
         q.inputs[0].shape().last() == k.inputs[0].shape().last();
}

void cover(std::vector<std::string>& covers, const Node& node) {
  if (node.covers.empty())
    covers.push_back(node.name);
  else
    covers.insert(covers.end(), node.covers.begin(), node.covers.end());
}

class Heads {
 public:
  explicit Heads(const std::vector<Tensor>& outputs) : uses_(count_uses(outputs)) {
    // Appends: how often they are outputs of the graph, or what a later one of the same step goes on from.
    std::unordered_map<const Node*, int> kept;
    for (const Tensor& out : outputs) ++kept[out.node.get()];
    const std::vector<Node*> nodes = walk(outputs);
    for (const Node* node : nodes)
      if (is(*node, Op::kv_append))
        for (size_t i = 0; i < 2; ++i) ++kept[node->inputs[i].node.get()];
    for (const Node* node : nodes) {
      if (!is(*node, Op::attend)) continue;
      const Node &q_rope = *node->inputs[0].node, &append = *node->inputs[1].node;
      if (!is(q_rope, Op::rope) || !is(append, Op::kv_append) || node->inputs[2].node.get() != &append) continue;
      const Node& k_rope = *append.inputs[2].node;
      if (!is(k_rope, Op::rope) || !agree(q_rope, k_rope)) continue;
      // Attention's are one use of the queries and two of the cache.
      if (uses_.at(&q_rope) != 1 || uses_.at(&append) != 2 + kept[&append] || uses_.at(&k_rope) != 1) continue;
      rope_of_.emplace(&append, &q_rope);
    }
  }

  std::vector<Tensor> operator()(const std::shared_ptr<Node>& node, const Node& original, const StandIn& stand_in) {
    if (is(original, Op::kv_append)) return append(*node, original, stand_in);
    if (!is(original, Op::attend)) return {};
    const auto turned = turned_.find(original.inputs[1].node.get());
    if (turned == turned_.end()) return {};
    auto joined = std::make_shared<Node>(*node);
    joined->inputs[0] = turned->second;
    return {{joined, 0}};
  }

 private:
  std::vector<Tensor> append(const Node& node, const Node& original, const StandIn& stand_in) {
    const auto found = rope_of_.find(&original);
    if (found == rope_of_.end()) return {};
    const Node &q_rope = *found->second, &k_rope = *original.inputs[2].node;
    const TurnedHeads q(q_rope, uses_);
    TurnedHeads k(k_rope, uses_);
    if (q.norm && k.norm && q.epsilon() != k.epsilon()) k.norm = nullptr;
    const Tensor from = stand_in(q.from()), angles = stand_in(q_rope.inputs[1]);
    if (!from || !angles) return {};  // the queries are made only after the cache was written
    const auto weight = [&](const TurnedHeads& heads) { return heads.norm ? stand_in(heads.weight()) : Tensor{}; };
    if ((q.norm && !weight(q)) || (k.norm && !weight(k))) return {};
    const HeadNorms norms{weight(q), weight(k), q.norm ? q.epsilon() : k.norm ? k.epsilon() : 0};
    KvState kv{node.inputs[0], node.inputs[1]};
    const Mask mask{node.inputs[4], node.inputs[5], node.inputs[6]};
    const Tensor turned = rope_append(kv, from, stand_in(k.from()), node.inputs[3], angles, q_rope.attr<RopeAttr>(),
                                      norms, mask, q_rope.location);
    turned.node->name = q_rope.name;
    for (const Node* covered : {k.norm, &k_rope, q.norm, &q_rope, &original})
      if (covered) cover(turned.node->covers, *covered);
    turned_.emplace(&original, turned);
    return {kv.keys, kv.values};
  }

  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, const Node*> rope_of_;  // the queries' rotation, by the append of their keys
  std::unordered_map<const Node*, Tensor> turned_;        // what is made of it
};

}  // namespace

std::vector<Tensor> fuse_heads(const std::vector<Tensor>& outputs) {
  Heads heads(outputs);
  return rewrite_with_stand_ins(outputs, [&](const std::shared_ptr<Node>& node, const Node& original,
                                             const StandIn& stand_in) { return heads(node, original, stand_in); });
}

}  // namespace consonant
