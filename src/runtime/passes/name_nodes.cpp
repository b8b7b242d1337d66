// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <unordered_map>

#include "runtime/passes/passes.hpp"

namespace consonant {

void name_nodes(const std::vector<Tensor>& outputs) {
  std::unordered_map<std::string, int> seen;
  for (Node* node : walk(outputs)) {
    if (node->op == op_weight || node->op == op_input || node->op == op_state) continue;  // named by their owners
    const int n = ++seen[node->name];
    if (n > 1) node->name += fmt::format(".{}", n);
  }
}

}  // namespace consonant
