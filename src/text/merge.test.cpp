// SPDX-License-Identifier: Apache-2.0
#include "text/merge.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "text/byte_bpe.hpp"

namespace consonant {
namespace {

using Table = std::map<std::pair<int32_t, int32_t>, Merge>;

std::vector<int32_t> merged(const std::vector<int32_t>& ids, const Table& table) {
  Merger merger;
  for (size_t i = 0; i < ids.size(); ++i) merger.add(static_cast<uint32_t>(i), 1, ids[i]);
  merger.run([&](const Symbol& a, const Symbol& b) {
    const auto it = table.find({a.id, b.id});
    return it == table.end() ? Merge{} : it->second;
  });
  std::vector<int32_t> out;
  uint32_t next = 0;
  merger.each([&](const Symbol& s) {
    EXPECT_EQ(s.start, next);
    next = s.start + s.length;
    out.push_back(s.id);
  });
  EXPECT_EQ(next, ids.size());
  return out;
}

// The definition: merge the leftmost of the best pairs, look again at all.
std::vector<int32_t> merged_slowly(std::vector<int32_t> ids, const Table& table) {
  for (;;) {
    size_t best = ids.size();
    Merge found{~0u, -1};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = table.find({ids[i], ids[i + 1]});
      if (it == table.end() || (best < ids.size() && it->second.priority >= found.priority)) continue;
      best = i;
      found = it->second;
    }
    if (best == ids.size()) return ids;
    ids[best] = found.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merger, NothingToDo) {
  EXPECT_EQ(merged({}, {}), std::vector<int32_t>());
  EXPECT_EQ(merged({3}, {}), std::vector<int32_t>({3}));
  EXPECT_EQ(merged({1, 2}, {}), std::vector<int32_t>({1, 2}));
}

TEST(Merger, LeftmostOfEquals) {
  EXPECT_EQ(merged({0, 0, 0}, {{{0, 0}, {0, 1}}}), std::vector<int32_t>({1, 0}));
  EXPECT_EQ(merged({0, 0, 0, 0, 0}, {{{0, 0}, {0, 1}}, {{1, 1}, {1, 2}}}), std::vector<int32_t>({2, 0}));
}

RC_GTEST_PROP(Merger, AsTheDefinition, ()) {
  // What two ids make is a new id, as in a trained vocabulary; priorities may be equal.
  Table table;
  const int letters = *rc::gen::inRange(1, 4), merges = *rc::gen::inRange(0, 12);
  int next = letters;
  for (int i = 0; i < merges; ++i) {
    const int a = *rc::gen::inRange(0, next), b = *rc::gen::inRange(0, next);
    if (table.emplace(std::pair(a, b), Merge{static_cast<uint32_t>(*rc::gen::inRange(0, 6)), next}).second) ++next;
  }
  const auto ids = *rc::gen::container<std::vector<int32_t>>(rc::gen::inRange(0, letters));
  RC_ASSERT(merged(ids, table) == merged_slowly(ids, table));
}

TEST(PairTable, FirstOfEqualPairsCounts) {
  PairTable table(2);
  EXPECT_EQ(table.find(1, 2).id, -1);
  table.add(1, 2, {7, 3});
  table.add(1, 2, {8, 4});
  EXPECT_EQ(table.find(1, 2).id, 3);
  EXPECT_EQ(table.find(1, 2).priority, 7u);
  EXPECT_EQ(table.find(2, 1).id, -1);
}

TEST(PairTable, HoldsAsManyAsItWasMadeFor) {
  for (int n : {0, 1, 2, 3, 5, 8, 1000}) {
    PairTable table(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) table.add(i, n - i, {static_cast<uint32_t>(i), i});
    for (int i = 0; i < n; ++i) ASSERT_EQ(table.find(i, n - i).id, i);
    ASSERT_EQ(table.find(n, n).id, -1);
  }
}

}  // namespace
}  // namespace consonant
