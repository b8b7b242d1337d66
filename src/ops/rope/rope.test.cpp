// SPDX-License-Identifier: Apache-2.0
#include "ops/rope/rope.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// At position 1 with base 10000 the two pairs of four dims turn by 1 and by 0.01.
TEST(Rope, TurnsNeighboursOrHalvesAndLeavesTheRest) {
  const float c = std::cos(1.0f), s = std::sin(1.0f), c2 = std::cos(0.01f), s2 = std::sin(0.01f);
  const auto turned = [](bool neighbours) {
    return [neighbours](CaseBuilder& b) {
      return rope(b.numbers("x", {1, 1, 5}, {1, 2, 3, 4, 5}), b.integers("pos", {1}, {1}),
                  {4, 10000, 1, neighbours, {}});
    };
  };
  expect_near(turned(true), {c - 2 * s, 2 * c + s, 3 * c2 - 4 * s2, 4 * c2 + 3 * s2, 5});
  expect_near(turned(false), {c - 3 * s, 2 * c2 - 4 * s2, 3 * c + s, 4 * c2 + 2 * s2, 5});
}

TEST(Rope, RefusesMoreDimsThanAHeadHas) {
  const std::string text = refusal_of([](CaseBuilder& b) {
    return rope(b.values("x", per_token(2, 3, 16)), b.integers("pos", Shape({2}, Axis::token), 0, 9), {32});
  });
  EXPECT_THAT(text, HasSubstr("rope: wants x [token, head, dim >= 32] and pos [token]"));
  EXPECT_THAT(text, HasSubstr("x f32[token<=2, 3, 16] pos i32[token<=2]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return rope(b.values("x", per_token(2, 3, 16)), b.integers("pos", Shape({3}, Axis::token), 0, 9), {16});
              }),
              HasSubstr("pos i32[token<=3]"));
}

}  // namespace
}  // namespace consonant
