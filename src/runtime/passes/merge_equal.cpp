// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <unordered_map>

#include "runtime/passes/passes.hpp"
#include "runtime/passes/rewrite.hpp"

namespace consonant {

std::vector<Tensor> merge_equal(const std::vector<Tensor>& outputs) {
  std::unordered_map<std::string, std::shared_ptr<Node>> first;
  return rewrite(outputs, [&](const std::shared_ptr<Node>& node, const Node&) -> std::vector<Tensor> {
    if (node->key.empty()) return {};
    std::string key = fmt::format("{}|{}", node->op, node->key);
    for (const Tensor& in : node->inputs) key += fmt::format("|{}.{}", fmt::ptr(in.node.get()), in.output);
    const auto& kept = first.emplace(key, node).first->second;
    if (kept == node) return {};
    std::vector<Tensor> same;
    for (size_t i = 0; i < kept->outputs.size(); ++i) same.push_back({kept, static_cast<int>(i)});
    return same;
  });
}

}  // namespace consonant
