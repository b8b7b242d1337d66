// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "graph/node.hpp"

namespace consonant {

// How often each node is used as an input of a graph or as one of its outputs.
std::unordered_map<const Node*, int> count_uses(const std::vector<Tensor>& outputs);

// A rule looks at a node whose inputs have been rewritten already, and returns what stands for its outputs, or nothing
// to keep it. `original` is the node before its inputs were rewritten (uses are counted on originals).
using Rule = std::function<std::vector<Tensor>(const std::shared_ptr<Node>& node, const Node& original)>;

// What stands for a value of the original graph, or nothing if its node wasn't reached yet.
using StandIn = std::function<Tensor(const Tensor& original)>;
using RuleWithStandIns = std::function<std::vector<Tensor>(const std::shared_ptr<Node>& node, const Node& original,
                                                           const StandIn& stand_in)>;

// The graph with `rule` applied to each node, operands first. Nodes are never changed in place: a graph that others
// hold stays as it was.
std::vector<Tensor> rewrite(const std::vector<Tensor>& outputs, const Rule& rule);
// The same for a rule that looks at other nodes than the one it is given.
std::vector<Tensor> rewrite_with_stand_ins(const std::vector<Tensor>& outputs, const RuleWithStandIns& rule);

}  // namespace consonant
