// SPDX-License-Identifier: Apache-2.0
#include "ops/add/add.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Add, MeetsEqualShapesAndVectors) {
  expect_exactly(
      [](CaseBuilder& b) {
        return add(b.numbers("a", {2, 2}, {1, 2, 3, 4}), b.numbers("b", {2}, {10, 20}));
      },
      {11, 22, 13, 24});
  expect_exactly(
      [](CaseBuilder& b) {
        return add(b.numbers("a", {2, 2}, {1, 2, 3, 4}), b.numbers("b", {2, 2}, {1, 3, -4, -0.5f}));
      },
      {2, 5, -1, 3.5f});
}

TEST(Add, RefusesOtherShapesWithBothAndTheLine) {
  const std::string text = refusal_of(
      [](CaseBuilder& b) { return add(b.values("left", per_token(4, 6)), b.values("right", per_token(4, 5))); });
  EXPECT_THAT(text, HasSubstr("add: wants two equal shapes"));
  EXPECT_THAT(text, HasSubstr("left f32[token<=4, 6] right f32[token<=4, 5]"));
  EXPECT_THAT(text, HasSubstr("add.test.cpp:"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return add(b.values("a", {2, 3}), b.values("b", {2}));
              }),
              HasSubstr("b f32[2]"));
  // A batch's rows are not a fixed number of rows.
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return add(b.values("a", per_token(2, 3)), b.values("b", {2, 3}));
              }),
              HasSubstr("a f32[token<=2, 3] b f32[2, 3]"));
}

}  // namespace
}  // namespace consonant
