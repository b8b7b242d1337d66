// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"

#include "ops/gelu/gelu.hpp"
#include "ops/mul/mul.hpp"
#include "ops/silu/silu.hpp"
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

// Fusion may replace the two nodes by this one: not a bit changes on the CPU.
TEST(Gated, HasTheBitsOfTheNodesItStandsFor) {
  for (const Activation f : {Activation::silu, Activation::gelu}) {
    const auto plain = [f](CaseBuilder& b) {
      Tensor gate = b.values("gate", per_token(5, 77), 3), x = b.values("x", per_token(5, 77));
      return mul(f == Activation::silu ? silu(gate) : gelu(gate), x);
    };
    const auto fused = [f](CaseBuilder& b) {
      Tensor gate = b.values("gate", per_token(5, 77), 3), x = b.values("x", per_token(5, 77));
      return gated(f, gate, x);
    };
    const std::vector<float> want = compute(DeviceKind::cpu, plain);
    EXPECT_EQ(compute(DeviceKind::cpu, fused), want);
  }
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
