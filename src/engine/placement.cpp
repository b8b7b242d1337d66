// SPDX-License-Identifier: Apache-2.0
#include "engine/placement.hpp"

#include <algorithm>
#include <map>

#include "engine/language_engine.hpp"
#include "ops/op.hpp"

namespace consonant {

Placement placement_of(Engine& engine) {
  Runner& runner = language_engine(engine).runner();
  const Plan& plan = runner.plan();
  std::map<std::string, int64_t> counts;
  for (const auto& wave : plan.waves)
    for (const PlannedNode& planned : wave) ++counts[std::string(op_name(planned.node->op))];
  Placement placement;
  placement.ops.assign(counts.begin(), counts.end());
  std::stable_sort(placement.ops.begin(), placement.ops.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  placement.weight_bytes = runner.weight_bytes();
  placement.cache_bytes_per_position = runner.kv_bytes_per_position();
  placement.arena_bytes = plan.arena_bytes;
  return placement;
}

}  // namespace consonant
