// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Gated, IsTheProductOfItsParts) {
  expect_near(
      [](CaseBuilder& b) {
        return gated(Activation::silu, b.numbers("gate", {1, 3}, {0, 1, -1}), b.numbers("x", {1, 3}, {5, 2, 10}));
      },
      {0, 2 * 0.7310586f, -2.6894143f});
}

TEST(Gated, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return gated(Activation::silu, b.values("gate", {1, 1}), b.values("x", {1, 1}));
  });
}

TEST(Gated, RefusesUnequalShapes) {
  const std::string text = refusal_of([](CaseBuilder& b) {
    return gated(Activation::gelu, b.values("gate", {2, 3}), b.values("x", {3, 2}));
  });
  EXPECT_THAT(text, HasSubstr("gated: wants two equal shapes"));
  EXPECT_THAT(text, HasSubstr("gate f32[2, 3] x f32[3, 2]"));
}

}  // namespace
}  // namespace consonant
