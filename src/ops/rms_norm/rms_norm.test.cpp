// SPDX-License-Identifier: Apache-2.0
#include "ops/rms_norm/rms_norm.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  // mean(9, 16) = 12.5
  expect_near(
      [](CaseBuilder& b) {
        return rms_norm(b.numbers("x", {1, 2}, {3, -4}), b.numbers("w", {2}, {2, 10}), 0);
      },
      {2 * 3 / 3.5355339f, -40 / 3.5355339f});
  // mean(1, 1) + 3 = 4
  expect_exactly(
      [](CaseBuilder& b) {
        return rms_norm(b.numbers("x", {1, 2}, {1, 1}), b.numbers("w", {2}, {1, 6}), 3);
      },
      {0.5f, 3});
}

TEST(RmsNorm, OfZerosIsZero) {
  expect_exactly(
      [](CaseBuilder& b) {
        return rms_norm(b.numbers("x", {2, 2}, {0}), b.numbers("w", {2}, {5}), 1e-30f);
      },
      {0, 0, 0, 0});
}

TEST(RmsNorm, RefusesAWeightOfAnotherLength) {
  const std::string text =
      refusal_of([](CaseBuilder& b) { return rms_norm(b.values("x", per_token(4, 64)), b.vector("w", 63), 1e-5f); });
  EXPECT_THAT(text, HasSubstr("rms_norm: wants x [..., n] and w [n]"));
  EXPECT_THAT(text, HasSubstr("x f32[token<=4, 64] w f32[63]"));
}

}  // namespace
}  // namespace consonant
