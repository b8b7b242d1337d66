// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/linear_of.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(LinearOf, MultipliesByTheChosenExperts) {
  // Two experts [2, 3] of whole numbers: what a row picks is seen.
  const auto build = [](CaseBuilder& b) {
    const Tensor ids = b.integers("ids", {2, 2}, std::vector<int32_t>{1, 0, 0, 0});
    return linear_of(ids, b.numbers("x", {2, 3}, {1, 0, 0, 0, 0, 1}), b.matrices("w", DType::f32, {2, 2, 3}));
  };
  // The same matrices one at a time: columns of w are what unit vectors give.
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, build);
    ASSERT_EQ(y.size(), 8u);
    EXPECT_EQ(y[4], y[6]) << "the second token's two slots have one expert";
    EXPECT_EQ(y[5], y[7]);
    EXPECT_NE(y[0], y[2]) << "the first token's have two";
  }
  EXPECT_EQ(compute(DeviceKind::cpu, build), compute(DeviceKind::reference, build));
}

TEST(LinearOf, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return linear_of(b.integers("ids", {1, 1}, 0, 0), b.values("x", {1, 2}), b.matrices("w", DType::f32, {1, 1, 2}));
  });
}

TEST(LinearOf, RefusesShapesThatDoNotFit) {
  const auto of = [](const Shape& ids, const Shape& x, const Shape& w) {
    return refusal_of([=](CaseBuilder& b) {
      return linear_of(b.integers("ids", ids, 0, 0), b.values("x", x), b.matrices("w", DType::f32, w));
    });
  };
  EXPECT_EQ(of({2, 3}, {2, 8}, {4, 5, 8}), "no error");
  EXPECT_EQ(of({2, 3}, {2, 3, 8}, {4, 5, 8}), "no error");
  EXPECT_THAT(of({2, 3}, {2, 4, 8}, {4, 5, 8}), HasSubstr("linear_of: wants ids [token, used] i32"));
  EXPECT_THAT(of({2, 3}, {1, 8}, {4, 5, 8}), HasSubstr("linear_of: wants"));
  EXPECT_THAT(of({2, 3}, {2, 7}, {4, 5, 8}), HasSubstr("linear_of: wants"));
  EXPECT_THAT(of({2, 3}, {2, 8}, {5, 8}), HasSubstr("linear_of: wants"));
}

}  // namespace
}  // namespace consonant
