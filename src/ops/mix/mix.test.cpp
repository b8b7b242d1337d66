// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Mix, WeighsAndSums) {
  expect_exactly(
      [](CaseBuilder& b) {
        const Tensor x = b.numbers("x", {2, 2, 3}, {1, 2, 3, 10, 20, 30, 4, 5, 6, -1, -2, -3});
        return mix(x, b.numbers("weights", {2, 2}, {0.5f, 2, 1, -1}));
      },
      {20.5f, 41, 61.5f, 5, 7, 9});
}

TEST(Mix, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return mix(b.values("x", {1, 1, 1}), b.values("weights", {1, 1}));
  });
}

TEST(Mix, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return mix(b.values("x", {2, 3, 4}), b.values("weights", {2, 2}));
              }),
              HasSubstr("mix: wants x [token, used, n] and weights [token, used]"));
}

}  // namespace
}  // namespace consonant
