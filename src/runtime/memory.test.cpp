// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>

namespace consonant {
namespace {

TEST(Memory, NoTwoThatLiveAtTheSameTimeShareBytes) {
  const bool held = rc::check([] {
    const auto lifetimes = *rc::gen::container<std::vector<Lifetime>>(rc::gen::map(
        rc::gen::tuple(rc::gen::inRange<int64_t>(0, 1000), rc::gen::inRange(-1, 20), rc::gen::inRange(0, 10)),
        [](const std::tuple<int64_t, int, int>& t) {
          const auto [bytes, first, more] = t;
          return Lifetime{bytes, first, more == 9 ? std::numeric_limits<int>::max() : first + more};
        }));
    const MemoryPlan plan = place(lifetimes);
    RC_ASSERT(plan.offsets.size() == lifetimes.size());
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      RC_ASSERT(plan.offsets[i] >= 0 && plan.offsets[i] % 64 == 0);
      RC_ASSERT(plan.offsets[i] + lifetimes[i].bytes <= plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        const bool together = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
        const bool apart = plan.offsets[i] + lifetimes[i].bytes <= plan.offsets[j] ||
                           plan.offsets[j] + lifetimes[j].bytes <= plan.offsets[i];
        RC_ASSERT(!together || apart);
      }
    }
  });
  EXPECT_TRUE(held);
}

TEST(Memory, IsUsedAgainAfterItsTime) {
  // A chain of values: each lives until the next is made.
  std::vector<Lifetime> chain;
  for (int i = 0; i < 100; ++i) chain.push_back({1 << 20, i, i + 1});
  EXPECT_EQ(place(chain).bytes, 2 << 20);
  EXPECT_EQ(place({{100, 0, 1}, {100, 1, 2}}).bytes, 2 * 128);
  EXPECT_EQ(place({{100, 0, 0}, {100, 1, 2}}).bytes, 128);
  EXPECT_EQ(place({}).bytes, 0);
}

}  // namespace
}  // namespace consonant
