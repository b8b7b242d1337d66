// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// Rows 1 ... 5 of two channels; the first tap reads channel 0, the second channel 1.
Build conv_of(const ConvAttr& attr, bool more) {
  return [=](CaseBuilder& b) {
    return conv(b.numbers("x", {5, 2}, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50}), b.numbers("w", {1, 4}, {1, 0, 0, 1}),
                more ? b.numbers("b", {1}, {0.5f}) : Tensor{}, attr,
                more ? b.numbers("residual", {3, 1}, {100, 200, 300}) : Tensor{});
  };
}

TEST(Conv, ReadsItsTapsApart) {
  expect_exactly(conv_of({2, 1, 1}, false), {21, 32, 43, 54});
  expect_exactly(conv_of({2, 1, 3}, false), {41, 52});
  expect_exactly(conv_of({2, 2, 2}, false), {31, 53});
}

TEST(Conv, AddsBiasAndResidual) { expect_exactly(conv_of({2, 1, 2}, true), {131.5f, 242.5f, 353.5f}); }

TEST(Conv, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return conv(b.values("x", {1, 1}), b.matrix("w", DType::f32, 1, 1), {}, {});
  });
}

TEST(Conv, WantsRowsForItsTaps) {
  EXPECT_THAT(refusal_of(conv_of({2, 1, 5}, false)), HasSubstr("conv: wants x [row, n] of a fixed size"));
  EXPECT_THAT(refusal_of(conv_of({3, 1, 1}, false)), HasSubstr("w [outputs, 3 n]"));
}

}  // namespace
}  // namespace consonant
