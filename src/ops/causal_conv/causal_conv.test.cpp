// SPDX-License-Identifier: Apache-2.0
#include "ops/causal_conv/causal_conv.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

float silu_of(double x) { return static_cast<float>(x / (1 + std::exp(-x))); }

// Three taps; what stands before position 0 counts as zero, though the slot holds NaNs.
TEST(CausalConv, BeginsWithZeros) {
  expect_near(
      [](CaseBuilder& b) {
        const std::vector<CaseBuilder::Sequence> begins = {{0, 4}};
        Tensor state = b.slot_state(StateKind::conv, begins, {2, 1});
        return causal_conv(state, b.numbers("x", per_token(4, 1), {1, 2, 3, 4}), b.numbers("w", {3}, {100, 10, 1}),
                           b.numbers("b", {1}, {-1}), b.slots(begins));
      },
      {silu_of(0), silu_of(11), silu_of(122), silu_of(233)});
}

TEST(CausalConv, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    Tensor state = b.slot_state(StateKind::conv, {{0, 1}}, {1, 1});
    return causal_conv(state, b.values("x", per_token(1, 1)), b.vector("w", 2), b.vector("b", 1), b.slots({{0, 1}}));
  });
}

TEST(CausalConv, RefusesWhatDoesNotFit) {
  const auto with = [](int64_t channels, int64_t taps, int64_t kept) {
    return refusal_of([=](CaseBuilder& b) {
      Tensor state = b.slot_state(StateKind::conv, {{0, 2}}, {kept, 8});
      return causal_conv(state, b.values("x", per_token(2, channels)), b.vector("w", taps), b.vector("b", 8),
                         b.slots({{0, 2}}));
    });
  };
  EXPECT_EQ(with(8, 32, 3), "no error");
  EXPECT_THAT(with(7, 32, 3), HasSubstr("causal_conv: wants state [slot, kernel - 1, channel]"));
  EXPECT_THAT(with(8, 24, 3), HasSubstr("w [channel * kernel]"));
  EXPECT_THAT(with(8, 8, 0), HasSubstr("causal_conv: wants state"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                Tensor state = b.slot_state(StateKind::conv, {{0, 3}}, {3, 8});
                return causal_conv(state, b.values("x", per_token(2, 8)), b.vector("w", 32), b.vector("b", 8),
                                   b.slots({{0, 3}}));
              }),
              HasSubstr("pos [token], seq [token] and slots [sequence] in i32"));
}

}  // namespace
}  // namespace consonant
