// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/sample.hpp"

#include <cmath>

#include "ops/sample/shares.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Shares, AreWholeNumbersOfTheirUnit) {
  EXPECT_EQ(share_of(1), uint64_t{1} << 43);
  EXPECT_EQ(share_of(0.25f), uint64_t{1} << 41);
  EXPECT_EQ(share_of(0x1.8p-43f), 1u);
  EXPECT_EQ(share_of(0x1p-44f), 0u);
  EXPECT_EQ(part_of(0.5f, 1000), 500u);
  EXPECT_EQ(part_of(1e-9f, 1000), 1u);
  EXPECT_EQ(moment_of(0.5f, 0.75f), uint64_t{3} << 40);
  EXPECT_EQ(moment_of(0, INFINITY), 0u);
}

TEST(Shares, ANumberFallsIntoTheMassInProportion) {
  const uint64_t most = (uint64_t{1} << 53) - 1;
  EXPECT_EQ(place_in(1000, 0), 0u);
  EXPECT_EQ(place_in(1000, most), 999u);
  EXPECT_EQ(place_in(1000, uint64_t{1} << 52), 500u);
  EXPECT_EQ(place_in(uint64_t{1} << 63, uint64_t{3} << 51), uint64_t{3} << 61);
  EXPECT_EQ(place_in(uint64_t{1} << 63, most), (uint64_t{1} << 63) - (uint64_t{1} << 10));
  // 0x123456789ABCDE * 0x7654321076543210 / 2^53, by another implementation
  EXPECT_EQ(place_in(0x7654321076543210u, 0x123456789ABCDEu), 4850628289880339765u);
}

TEST(Shares, PenaltiesFollowTheirFormulas) {
  EXPECT_EQ(adjusted_logit(2, 1, 0, 5, 5, 5), 3);
  EXPECT_EQ(adjusted_logit(2, 1, 2, 1.5f, 0.25f, 0.125f), 3 / 1.5f - 0.625f);
  EXPECT_EQ(adjusted_logit(-2, 0, 1, 1.5f, 0, 0), -3);
}

TEST(Sample, RefusesParametersOfOtherShapes) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return sample(b.values("logits", {2, 9}), b.values("numbers", {2, 6}),
                              b.integers("integers", {2, 3}, 0, 1), b.integers("adjusted", {2, 4, 2}, 0, 1),
                              b.values("bias", {2, 4}))
                    .first;
              }),
              HasSubstr("sample: wants logits [row, n] f32"));
}

}  // namespace
}  // namespace consonant
