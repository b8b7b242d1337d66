// SPDX-License-Identifier: Apache-2.0
#include "ops/gated_norm/gated_norm.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// What the gate multiplies a whole group with cancels. The groups are (1, 2, 2) and (0, 0, 3) times that, whose root
// mean squares are equal.
TEST(GatedNorm, NormalisesEachGroupAfterTheGate) {
  const float r = 0.5773503f;  // 1 / sqrt(3)
  expect_near(
      [](CaseBuilder& b) {
        return gated_norm(b.numbers("x", {1, 6}, {1, 2, 2, 0, 0, 3}), b.numbers("z", {1, 6}, {0.5413249f}),
                          b.numbers("w", {6}, {1, 1, 3, 1, 1, -1}), 2, 0);
      },
      {r, 2 * r, 6 * r, 0, 0, -3 * r}, 1e-5f);
}

TEST(GatedNorm, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return gated_norm(b.values("x", {1, 1}), b.values("z", {1, 1}), b.vector("w", 1), 1, 0);
  });
}

TEST(GatedNorm, RefusesWhatDoesNotFit) {
  const auto with = [](int64_t z, int64_t w, int64_t groups) {
    return refusal_of([=](CaseBuilder& b) {
      return gated_norm(b.values("x", {2, 12}), b.values("z", {2, z}), b.vector("w", w), groups, 0);
    });
  };
  EXPECT_EQ(with(12, 12, 4), "no error");
  for (const std::string& text : {with(11, 12, 4), with(12, 3, 4), with(12, 12, 5), with(12, 12, 0)})
    EXPECT_THAT(text, HasSubstr("gated_norm: wants x and z [..., n] and w [n], n a multiple of the groups"));
}

}  // namespace
}  // namespace consonant
