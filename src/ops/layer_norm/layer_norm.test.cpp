// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/layer_norm.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(LayerNorm, TakesTheMeanAwayAndDividesByTheDeviation) {
  // mean 1, variance (4 + 4) / 2 = 4
  expect_near(
      [](CaseBuilder& b) {
        return layer_norm(b.numbers("x", {1, 2}, {3, -1}), b.numbers("w", {2}, {2, 10}), b.numbers("b", {2}, {1, 5}),
                          0);
      },
      {3, -5});
  // variance 4 + 12
  expect_exactly(
      [](CaseBuilder& b) {
        return layer_norm(b.numbers("x", {1, 2}, {3, -1}), b.numbers("w", {2}, {1, 1}), b.numbers("b", {2}, {0, 0}),
                          12);
      },
      {0.5f, -0.5f});
}

TEST(LayerNorm, OfEqualNumbersIsTheBias) {
  expect_exactly(
      [](CaseBuilder& b) {
        return layer_norm(b.numbers("x", {2, 2}, {7}), b.numbers("w", {2}, {5}), b.numbers("b", {2}, {1, -2}), 1e-5f);
      },
      {1, -2, 1, -2});
}

TEST(LayerNorm, SurvivesALargeMean) {
  // mean 4097, deviation 1: exact in float32 with two passes; E[x^2] - E[x]^2 would lose it.
  expect_near(
      [](CaseBuilder& b) {
        return layer_norm(b.numbers("x", {1, 2}, {4096, 4098}), b.numbers("w", {2}, {1, 1}),
                          b.numbers("b", {2}, {0, 0}), 0);
      },
      {-1, 1});
}

TEST(LayerNorm, RefusesABiasOfAnotherLength) {
  const std::string text = refusal_of([](CaseBuilder& b) {
    return layer_norm(b.values("x", per_token(4, 64)), b.vector("w", 64), b.vector("b", 63), 1e-5f);
  });
  EXPECT_THAT(text, HasSubstr("layer_norm: wants x [..., n], w [n] and b [n]"));
}

}  // namespace
}  // namespace consonant
