// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.hpp"

#include <algorithm>
#include <numeric>

#include "base/checked.hpp"

namespace consonant {

MemoryPlan place(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    const Lifetime& life = lifetimes[i];
    const int64_t bytes = round_up(std::max<int64_t>(life.bytes, 1), 64);
    int64_t offset = 0;
    for (size_t j : placed) {
      const Lifetime& other = lifetimes[j];
      if (other.last < life.first || life.last < other.first) continue;
      if (offset + bytes <= plan.offsets[j]) break;
      offset = std::max(offset, plan.offsets[j] + round_up(std::max<int64_t>(other.bytes, 1), 64));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  i);
  }
  return plan;
}

}  // namespace consonant
