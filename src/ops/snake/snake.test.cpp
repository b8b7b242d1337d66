// SPDX-License-Identifier: Apache-2.0
#include "ops/snake/snake.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Snake, TakesLogarithmsOfBothParameters) {
  const auto want = [](double x, double a, double b) {
    const double wave = std::sin(std::exp(a) * x);
    return static_cast<float>(x + wave * wave / (std::exp(b) + 1e-9));
  };
  expect_near(
      [](CaseBuilder& b) {
        return snake(b.numbers("x", {2, 2}, {1, -2, 0, 100}), b.numbers("a", {2}, {0, 1}),
                     b.numbers("b", {2}, {0.5f, -1}));
      },
      {want(1, 0, 0.5), want(-2, 1, -1), 0, want(100, 1, -1)}, 3e-6f);
}

TEST(Snake, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return snake(b.values("x", {1, 1}), b.vector("a", 1), b.vector("b", 1));
  });
}

TEST(Snake, WantsParametersOfEachChannel) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return snake(b.values("x", {2, 3}), b.vector("a", 3), b.vector("b", 2));
              }),
              HasSubstr("snake: wants x [..., n], a [n] and b [n]"));
}

}  // namespace
}  // namespace consonant
