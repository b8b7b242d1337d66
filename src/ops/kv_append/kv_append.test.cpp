// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_append/kv_append.hpp"

#include <cmath>

#include "ops/attend/attend.hpp"
#include "ops/kv_cache.hpp"
#include "ops/test_support.hpp"
#include "tensor/half.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// What a cache of one page, one head of 32 numbers reads after `row` was written at position 3.
std::vector<float> kept(DType type, StateKind kind, const std::vector<float>& row) {
  std::vector<std::byte> page(static_cast<size_t>(kv_page_bytes(type, 1, 32)), std::byte{0});
  const Shape shape = kind == StateKind::keys ? Shape{1, 1, 32, kv_page} : Shape{1, 1, kv_page, 32};
  const KvPage cache({page.data(), type, shape, dense(type, shape).strides}, kind, 0);
  cache.write(0, 3, row.data());
  std::vector<float> back;
  for (int64_t i = 0; i < 32; ++i) back.push_back(cache.read(0, 3, i));
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(cache.read(0, 2, i), 0) << "a neighbour was written";
  return back;
}

TEST(KvCache, ReadsBackWhatItsTypeHolds) {
  std::vector<float> row;
  for (int i = 0; i < 32; ++i) row.push_back(static_cast<float>(i - 12) * 0.3f);
  for (const StateKind kind : {StateKind::keys, StateKind::values}) {
    EXPECT_EQ(kept(DType::f32, kind, row), row);
    const std::vector<float> half = kept(DType::f16, kind, row), bytes = kept(DType::q8_0, kind, row);
    const float scale = to_float(to_half(19 * 0.3f / 127));
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(half[i], to_float(to_half(row[i])));
      EXPECT_EQ(bytes[i], scale * std::nearbyint(row[i] / scale));
    }
  }
}

// Numbers that leave the type's range must show when they are read, not turn into others.
TEST(KvCache, ShowsWhatItCannotHold) {
  for (const DType type : {DType::f16, DType::q8_0})
    for (const float bad : {NAN, -NAN, INFINITY, -INFINITY, 1e30f}) {
      std::vector<float> row(32, 1);
      row[17] = bad;
      EXPECT_FALSE(std::isfinite(kept(type, StateKind::keys, row)[17])) << name(type) << " of " << bad;
    }
}

TEST(KvAppend, ReplacesTheStateByItsNextValue) {
  CaseBuilder b;
  CaseBuilder::Cache c = b.cache(DType::f16, 2, 64, 32, {{60, 5}}, false);
  const KvState old = c.kv;
  const auto [keys, values] =
      kv_append(c.kv, b.values("k", per_token(5, 2, 64)), b.values("v", per_token(5, 2, 32)), c.mask);
  EXPECT_EQ(c.kv.keys, keys);
  EXPECT_EQ(c.kv.values, values);
  EXPECT_EQ(keys.shape(), old.keys.shape());
  EXPECT_EQ(values.shape(), old.values.shape());
  EXPECT_EQ(keys.type(), DType::f16);
  EXPECT_EQ(keys.node->inputs[static_cast<size_t>(keys.node->outputs[0].alias)], old.keys);
  EXPECT_EQ(keys.node->inputs[static_cast<size_t>(keys.node->outputs[1].alias)], old.values);
}

TEST(KvAppend, RefusesOtherHeadsAndOtherTypes) {
  EXPECT_THAT(
      refusal_of([](CaseBuilder& b) {
        CaseBuilder::Cache c = b.cache(DType::f16, 2, 64, 32, {{0, 5}}, false);
        return kv_append(c.kv, b.values("k", per_token(5, 3, 64)), b.values("v", per_token(5, 2, 32)), c.mask).first;
      }),
      HasSubstr("k f32[token<=5, 3, 64] v f32[token<=5, 2, 32]"));
  EXPECT_THAT(
      refusal_of([](CaseBuilder& b) {
        CaseBuilder::Cache c = b.cache(DType::q4_0, 2, 64, 32, {{0, 5}}, false);
        return kv_append(c.kv, b.values("k", per_token(5, 2, 64)), b.values("v", per_token(5, 2, 32)), c.mask).first;
      }),
      HasSubstr("wants a cache of f32, f16 or q8_0"));
}

}  // namespace
}  // namespace consonant
