// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"
#include "ops/rows/rows.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(LinearShapes, RefuseOtherShapesWithTheWeight) {
  const std::string text = refusal_of(
      [](CaseBuilder& b) { return linear(b.values("x", per_token(4, 64)), b.matrix("w", DType::q8_0, 8, 96)); });
  EXPECT_THAT(text, HasSubstr("linear: wants x [token, inputs] and w [outputs, inputs]"));
  EXPECT_THAT(text, HasSubstr("x f32[token<=4, 64] w q8_0[8, 96]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                const Tensor x = b.values("x", per_token(4, 64)), w = b.matrix("w", DType::q8_0, 8, 64);
                return linear_epilogue(x, w, b.vector("bias", 9), {});
              }),
              HasSubstr("linear: wants bias [outputs]; got w q8_0[8, 64] bias f32[9]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                const Tensor x = b.values("x", per_token(4, 64)), w = b.matrix("w", DType::q8_0, 8, 64);
                return linear_epilogue(x, w, {}, x);
              }),
              HasSubstr("linear: wants residual [token, outputs]"));
}

// A weight may lie repacked, so a part of it is no matrix that a kernel could read.
TEST(Matrices, PartsOfAWeightAreRefused) {
  CaseBuilder b;
  const Tensor part = split(b.matrix("w", DType::q8_0, 8, 128), {64, 64})[1];
  const Tensor product = linear(b.values("x", per_token(4, 64)), part);
  const Tensor gathered = rows(part, b.integers("index", {3}, 0, 7));
  for (const DeviceKind device : both_devices) {
    EXPECT_EQ(choose_kernel(*product.node, device).refusal.reason, "w is part of a weight") << name(device);
    EXPECT_EQ(choose_kernel(*gathered.node, device).refusal.reason, "x is part of a weight") << name(device);
  }
}

TEST(Matrices, HoldNumbersThatProductsRead) {
  for (const DType type : {DType::i32, DType::f64, DType::q8_x}) {
    CaseBuilder b({false, "w", type});
    const Tensor product = linear(b.values("x", per_token(4, 64)), b.matrix("w", DType::f32, 8, 64));
    for (const DeviceKind device : both_devices)
      EXPECT_EQ(choose_kernel(*product.node, device).refusal.reason, fmt::format("w is {}", name(type)));
  }
}

}  // namespace
}  // namespace consonant
