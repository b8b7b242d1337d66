// SPDX-License-Identifier: Apache-2.0
#include "ops/mul/mul.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Mul, MeetsEqualShapesAndVectors) {
  expect_exactly(
      [](CaseBuilder& b) {
        return mul(b.numbers("a", {2, 2}, {1, 2, 3, 4}), b.numbers("b", {2}, {10, 20}));
      },
      {10, 40, 30, 80});
  expect_exactly(
      [](CaseBuilder& b) {
        return mul(b.numbers("a", {2, 2}, {1, 2, 3, 4}), b.numbers("b", {2, 2}, {1, 3, -4, -0.5f}));
      },
      {1, 6, -12, -2});
}

TEST(Mul, RefusesOtherShapesWithBothAndTheLine) {
  const std::string text = refusal_of(
      [](CaseBuilder& b) { return mul(b.values("left", per_token(4, 6)), b.values("right", per_token(4, 5))); });
  EXPECT_THAT(text, HasSubstr("mul: wants two equal shapes"));
  EXPECT_THAT(text, HasSubstr("left f32[token<=4, 6] right f32[token<=4, 5]"));
  EXPECT_THAT(text, HasSubstr("mul.test.cpp:"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return mul(b.values("a", {2, 3}), b.values("b", {2}));
              }),
              HasSubstr("b f32[2]"));
  // A batch's rows are not a fixed number of rows.
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return mul(b.values("a", per_token(2, 3)), b.values("b", {2, 3}));
              }),
              HasSubstr("a f32[token<=2, 3] b f32[2, 3]"));
}

}  // namespace
}  // namespace consonant
