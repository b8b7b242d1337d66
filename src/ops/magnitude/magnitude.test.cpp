// SPDX-License-Identifier: Apache-2.0
#include "ops/magnitude/magnitude.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Magnitude, PairsTheHalvesOfARow) {
  expect_exactly(
      [](CaseBuilder& b) {
        return magnitude(b.numbers("x", {2, 4}, {3, -5, 4, 12, 0, 0, -8, 0}));
      },
      {5, 13, 8, 0});
}

TEST(Magnitude, SurvivesNumbersWhoseSquaresDoNot) {
  expect_near(
      [](CaseBuilder& b) {
        return magnitude(b.numbers("x", {1, 4}, {3e30f, 3e-30f, 4e30f, 4e-30f}));
      },
      {5e30f, 5e-30f});
}

TEST(Magnitude, RefusesRowsOfAnOddSize) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return magnitude(b.values("x", {2, 5}));
              }),
              HasSubstr("magnitude: wants x [..., 2 n]"));
}

}  // namespace
}  // namespace consonant
