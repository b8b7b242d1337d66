// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_heads/linear_heads.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(LinearHeads, MultipliesEachHeadByItsOwn) {
  expect_exactly(
      [](CaseBuilder&
             b) {  // two tokens, two heads of two numbers; w: head 0 adds them up, head 1 takes their difference
        return linear_heads(b.numbers("x", per_token(2, 2, 2), {1, 2, 3, 5, 10, 20, 30, 50}),
                            b.numbers("w", {2, 1, 2}, {1, 1, 1, -1}));
      },
      {3, -2, 30, -20});
}

TEST(LinearHeads, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return linear_heads(b.values("x", per_token(1, 2, 32)), b.matrices("w", DType::f32, {2, 8, 32}));
  });
}

TEST(LinearHeads, RefusesHeadsThatDoNotFit) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return linear_heads(b.values("x", per_token(1, 3, 32)), b.matrices("w", DType::f32, {2, 8, 32}));
              }),
              HasSubstr("linear_heads: wants x [token, head, inputs] and w [head, outputs, inputs]; got x"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return linear_heads(b.values("x", per_token(1, 2, 31)), b.matrices("w", DType::f32, {2, 8, 32}));
              }),
              HasSubstr("linear_heads"));
}

}  // namespace
}  // namespace consonant
