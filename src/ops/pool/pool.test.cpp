// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Pool, IsTheMeanAndThePopulationsDeviation) {
  expect_near(
      [](CaseBuilder& b) {
        return pool(b.numbers("x", {4, 2}, {1, 7, 2, 7, 3, 7, 6, 7}));
      },
      {3, 7, std::sqrt(3.5f), 1e-6f});
}

// Shares 1/4 and 3/4.
TEST(Pool, WeighsByTheSoftmaxOfScores) {
  expect_near(
      [](CaseBuilder& b) {
        return pool(b.numbers("x", {2, 1}, {0, 4}), b.numbers("scores", {2, 1}, {100, 100 + std::log(3.0f)}));
      },
      {3, std::sqrt(3.0f)}, 1e-5f);
}

TEST(Pool, WantsAScoreForEachNumber) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return pool(b.values("x", {2, 2}), b.values("scores", {2, 1}));
              }),
              HasSubstr("pool: wants x [row, n] of a fixed size"));
}

}  // namespace
}  // namespace consonant
