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

using Uses = std::unordered_map<const Node*, int>;

// A rotation, and the norm before it where nobody else uses that; `original` is the rotation as uses are counted.
struct TurnedHeads {
  const Node* rope;
  const Node* norm = nullptr;

  TurnedHeads(const Node& rope, const Node& original, const Uses& uses) : rope(&rope) {
    const Node& before = *rope.inputs[0].node;
    if (is(before, Op::rms_norm) && uses.at(original.inputs[0].node.get()) == 1) norm = &before;
  }
  Tensor from() const { return norm ? norm->inputs[0] : rope->inputs[0]; }
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

// Made where attention reads both, since all that the new node reads has been rewritten by then.
std::vector<Tensor> fuse(const std::shared_ptr<Node>& attend, const Node& original, const Uses& uses) {
  const auto input = [](const Node& node, size_t i) -> const Node& { return *node.inputs[i].node; };
  const Node &q_rope = input(*attend, 0), &append = input(*attend, 1);
  if (!is(q_rope, Op::rope) || !is(append, Op::kv_append) || attend->inputs[2].node != attend->inputs[1].node)
    return {};
  const Node &old_rope = input(original, 0), &old_append = input(original, 1), &k_rope = input(append, 2);
  if (!is(k_rope, Op::rope) || !agree(q_rope, k_rope)) return {};
  // Attention's are one use of the queries and two of the cache.
  if (uses.at(&old_rope) != 1 || uses.at(&old_append) != 2 || uses.at(&input(old_append, 2)) != 1) return {};

  const TurnedHeads q(q_rope, old_rope, uses);
  TurnedHeads k(k_rope, input(old_append, 2), uses);
  if (q.norm && k.norm && q.epsilon() != k.epsilon()) k.norm = nullptr;
  const HeadNorms norms{q.weight(), k.weight(), q.norm ? q.epsilon() : k.norm ? k.epsilon() : 0};
  KvState kv{append.inputs[0], append.inputs[1]};
  const Mask mask{append.inputs[4], append.inputs[5], append.inputs[6]};
  const Tensor turned = rope_append(kv, q.from(), k.from(), append.inputs[3], q_rope.inputs[1], q_rope.attr<RopeAttr>(),
                                    norms, mask, q_rope.location);
  turned.node->name = q_rope.name;
  for (const Node* node : {k.norm, &k_rope, q.norm, &q_rope, &append})
    if (node) cover(turned.node->covers, *node);

  auto joined = std::make_shared<Node>(*attend);
  joined->inputs[0] = turned, joined->inputs[1] = kv.keys, joined->inputs[2] = kv.values;
  return {{joined, 0}};
}

}  // namespace

std::vector<Tensor> fuse_heads(const std::vector<Tensor>& outputs) {
  const Uses uses = count_uses(outputs);
  return rewrite(outputs, [&](const std::shared_ptr<Node>& node, const Node& original) -> std::vector<Tensor> {
    return is(*node, Op::attend) ? fuse(node, original, uses) : std::vector<Tensor>{};
  });
}

}  // namespace consonant
